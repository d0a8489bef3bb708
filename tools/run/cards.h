/* cards.h - how many GPUs the CUDA driver of this machine shows to a program. */
#pragma once

/* Asks it in a child, for a driver in a bad state can crash or hang its caller. 0: it does not say
 * within a few seconds. */
unsigned cards_count(void);
