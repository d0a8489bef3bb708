/*
 * actor.h - the little program of `gpushare doctor --selftest`: an ordinary user of the GPU, which
 * does what its stdin says and answers on stdout.
 *
 * It is this tool, started again. It finds CUDA's driver or HIP's runtime by dlopen, so the tool is
 * linked with neither. A line of stdin is one of
 *
 *     open            starts the runtime on the first GPU; answers its version and the GPU's name
 *     allocate BYTES
 *     fill BYTE       copies the byte to all of the allocation, and waits until it is there
 *     read            answers the byte, or "mixed" where not all are equal
 *     free            also what was freed before
 *     export          answers the handle
 *     import HANDLE
 *     close
 *
 * and each is answered by a line: the runtime's own code, and what else is said above.
 */
#pragma once

#include "run/vendor.h"

/* Answers until stdin ends. Returns the exit status. */
int actor_run(enum runtime runtime);
