/*
 * Checkpoints of processes: the steps that cuCheckpointProcess* take, and what they answer.
 */
#pragma once

#include "../protocol.h"

/* A CUresult; *state is the CUprocessState after it, *bytes what the process has on cards. */
unsigned process_ask(int pid, enum sim_process what, uint64_t *state, uint64_t *bytes);
