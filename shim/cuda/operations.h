/* operations.h - the driver operations of driver/driver_ops.h for CUDA. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* gps_entry_slowly for CUDA: finds libcuda, and makes these operations gps_ops. */
bool gps_operations_enter(void);

/* Whether memory of cuMemCreate may be registered with other hardware. Inside a scope or not. */
bool gps_operations_rdma(int device);

/* --- kernels.c: the kernels that hash and compare memory (kernels.cu), and copies --- */

/* On a stream of ours. They are made in a context at the first use there. Inside a gps_scope; one
 * thread at a time (merge/merger.h). Codes as in driver_ops.h. The stream is ours because the
 * legacy one ends a capture under way in another thread, and a thread that has used its per-thread
 * one cannot exit in a forked child: the driver's exit handler crashes there (fork_probe, H200,
 * 2026-11-22). */

void gps_kernels_load(void);
int gps_kernels_digest(uint64_t from, uint64_t size, uint64_t *hashes);
int gps_kernels_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal);

/* They return when the bytes are copied. */
int gps_kernels_copy(uint64_t to, uint64_t from, uint64_t size);
int gps_kernels_copy_out(void *to, uint64_t from, uint64_t size);

/* The context is gone, with the kernels that were loaded into it. */
void gps_kernels_forget(uint64_t context);
