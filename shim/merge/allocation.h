/*
 * allocation.h - the life of an area: an allocation that a merge rule takes, and its end.
 *
 * To the program an area is as an allocation of cudaMalloc. Any thread may call these functions,
 * without a lock unless their comment says otherwise. The codes are the driver's.
 */
#pragma once

#include "area.h"
#include "gate/gate.h"
#include "process/program.h"

/* An allocation that a rule took. */
struct gps_merge_request {
    const struct gps_rule *rule;
    uint64_t index, size, context;
    int device;
    const uint8_t *uuid;
};

/* A rule of this program merges. Constant once begun. The start also sets gps_gate_active. */
extern bool gps_merge_active;
/* Allocations that no rule takes lie in blocks, too (suspend = on). Constant as well. */
extern bool gps_blocks_active;
void gps_merge_start(const struct gps_config *config, const struct gps_program *program);

/* Is called inside a gps_scope, with the context current. GPS_OUT_OF_MEMORY: there is too little on
 * the GPU. Without success the program's own call says what is wrong, or *why does. */
int gps_merge_allocate(const struct gps_merge_request *request, uint64_t *pointer,
                       const char **why);
/* Waits for the device and frees the allocation, inside a gps_scope that has entered its context.
 */
int gps_merge_free(uint64_t pointer);
/* Frees the allocation on a stream, inside a gps_scope with the program's context: its memory
 * stays until the work that is on the stream has ended. False: there is no such allocation, or it
 * cannot be known when that work ends. */
bool gps_merge_free_ordered(uint64_t pointer, uint64_t stream);
/* Ends areas freed on streams whose work has ended since. True: it ended some. No scope. */
enum gps_merge_end {
    GPS_MERGE_AT_ONCE, /* does nothing where another thread has gps_swap_lock */
    GPS_MERGE_IF_ENDED,
    GPS_MERGE_SURELY, /* where none can end, waits for the work of the current context */
};
bool gps_merge_end_freed(enum gps_merge_end how);
/* The same for one that has gps_swap_lock, inside a scope for driver calls. */
void gps_merge_end_freed_locked(void);
/* Ends a lost context's areas, if made before this epoch. Called before gps_swap_permit. */
void gps_merge_purge(uint64_t context, uint64_t before);

/* The area that the address lies in, without its blocks. It needs no scope. */
bool gps_merge_find(uint64_t address, struct gps_area *found);
