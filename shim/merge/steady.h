/*
 * steady.h - how much memory of a GPU a program with a merge rule is told to be free: what would be
 * if nothing were merged (free = steady).
 *
 * Programs size themselves by that number: how much it fell while they loaded, or how much is left.
 * What the directory's other processes save when the program first asks stays in it. What is saved
 * since then is left out, its own part included, so that loading costs as much as without gpushare,
 * and the program sees no memory that merging frees. It is never told more than the driver says.
 *
 * What is saved stands in the slots of all processes: the mappings of a block but one.
 */
#pragma once

#include <stdint.h>

/* Turns the driver's figure of the current device into the one that the program is told. Any
 * thread; it makes its own scope. */
uint64_t gps_steady_free(uint64_t available);

/* For `gpushare explain`: where the largest figure that was left out is kept. */
void gps_steady_keep(uint64_t *most);
