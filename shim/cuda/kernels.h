/*
 * kernels.h - the kernels that hash and compare memory (kernels.cu), on a stream of ours.
 *
 * Loaded into a context when they are first asked for there. Inside a gps_scope; one thread at a
 * time (merge/merger.h). Codes as in driver_ops.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

int gps_kernels_digest(uint64_t from, uint64_t size, uint64_t *hashes);
int gps_kernels_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal);

/* The context is gone, with what was loaded into it. */
void gps_kernels_forget(uint64_t context);
