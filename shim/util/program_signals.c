/* program_signals.c - see program_signals.h. */
#include "program_signals.h"

__thread const sigset_t *gps_program_signals;
