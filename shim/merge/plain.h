/*
 * plain.h - all memory that merge rules took becomes plain, before a function of the driver runs
 * that nobody here knows.
 *
 * Such a function may copy past the gate, capture, or hold memory physically. So each block gets
 * memory of this process's own, mapped, and memory of cuMemCreate is whole again. From then on the
 * process merges nothing, and its rules take nothing to merge (unmerged.h). That is told once, with
 * the name of the function.
 */
#pragma once

#include <stdbool.h>

/* The function is about to run. Without such memory it may, unless `surely`: it can run at any time
 * from now on. Any thread, outside any pass of the gate. It needs no scope. */
void gps_plain_make(const char *function, bool surely);
