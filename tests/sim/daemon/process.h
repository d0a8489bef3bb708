/*
 * Checkpoints of processes: the steps that cuCheckpointProcess* take, and what they answer.
 */
#ifndef GPUSIM_PROCESS_H
#define GPUSIM_PROCESS_H

#include "../protocol.h"

/* A CUresult; *state is the CUprocessState after it. */
unsigned process_ask(int pid, enum sim_process what, uint64_t *state);

#endif
