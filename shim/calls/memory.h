/*
 * memory.h - what an allocation and a free mean. The way of one cudaFree begins in gps_memory_free.
 *
 * Needs no scope. Any thread.
 */
#pragma once

#include "ipc/close_before_free.h"

/* The driver has allocated. */
void gps_memory_allocated(uint64_t pointer, uint64_t size);

/* Whether the program asks for the handle of memory that it has freed; *code is the answer then.
 * The driver would give it while others hold the memory. Memory that was to leave with the process,
 * or with a context, is used by a thread that goes on: it is as before. */
bool gps_memory_export_denied(uint64_t pointer, int *code);

/* The program frees `pointer` with the driver's `release`. Returns the code for the program. */
int gps_memory_free(uint64_t pointer, struct gps_release release);
