/*
 * pools.h - calls for the program's own memory pools: the driver answers them, and their effects
 * are written into the books (registry/pool_books.h). In an audit other processes see which
 * pointers are imported (GPS_VIA_POOL). No answer is changed. Any thread; no scope.
 */
#pragma once

#include "ipc/close_before_free.h"
#include "mappings.h"
#include "registry/pool_books.h"

/* --- after the driver's success; without trace, context and era --- */

void gps_pools_made(struct gps_pool made);
void gps_pools_imported(struct gps_pool made, int descriptor);
void gps_pools_exported(int descriptor);
/* On an explicit stream: memory that is allocated in a capture is the graph's, and in no pool. */
void gps_pools_allocated(struct gps_pool_pointer made, uint64_t stream);
void gps_pools_pointer_imported(struct gps_pool_pointer made,
                                const uint8_t exported[GPS_HANDLE_BYTES]);
void gps_pools_pointer_exported(uint64_t pointer, const uint8_t exported[GPS_HANDLE_BYTES]);

/* --- after the driver's refusal --- */

void gps_pools_not_allocated(uint64_t pool, int code);
void gps_pools_not_exported(uint64_t pool, uint32_t type, int code);
void gps_pools_pointer_not_exported(uint64_t pointer, int code);

/* --- around the driver's call --- */

int gps_pools_destroy(uint64_t pool, gps_handle_fn *destroy);
/* Frees a pointer that is no allocation in the registry, and perhaps none of a pool. */
int gps_pools_free(uint64_t pointer, const struct gps_release *release);
