/*
 * allocation.h - the life of an area: an allocation that a merge rule takes, and its end.
 *
 * The program has it as if it were cudaMalloc's. Any thread may call these functions, without a
 * lock unless their comment says otherwise. The codes are the driver's.
 */
#pragma once

#include "area.h"
#include "gate/gate.h"
#include "process/program.h"

/* What a rule took. */
struct gps_merge_request {
    const struct gps_rule *rule;
    uint64_t index, size, context;
    int device;
    const uint8_t *uuid;
};

/* A rule of this program merges. Constant once the process has begun. */
extern bool gps_merge_active;
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
/* Ends what was freed on streams whose work has ended since. True: it ended some of it. It needs no
 * scope. */
enum gps_merge_end {
    GPS_MERGE_AT_ONCE, /* nothing where another thread has gps_swap_lock */
    GPS_MERGE_IF_ENDED,
    GPS_MERGE_SURELY, /* where there is none, the work of the current context is waited for */
};
bool gps_merge_end_freed(enum gps_merge_end how);
/* The same for one that has gps_swap_lock, inside a scope for driver calls. */
void gps_merge_end_freed_locked(void);
/* The context is gone: its areas that were made before this epoch end. Before gps_swap_permit. */
void gps_merge_purge(uint64_t context, uint64_t before);

/* The allocation that the address lies in, without its blocks. It needs no scope. Memory of
 * cuMemCreate is none. */
bool gps_merge_find(uint64_t address, struct gps_area *found);

/* Maps all blocks that are unbacked yet, in all areas, because work begins that may touch them. The
 * code is that of areas that the current device reaches; of GPS_OUT_OF_MEMORY see below. It needs
 * no scope. */
int gps_merge_back_all(void);
/* A block of a rule with overcommit found no memory. True: others may merge blocks, so it is worth
 * another look, and a millisecond has passed, with the program's signals let in. It is for a
 * second, from *until == 0 on, and then no more until there was some. Inside a gps_scope, without a
 * lock. */
bool gps_merge_await_memory(uint64_t *until);
/* An UNBACKED block is mapped. With the lock. */
int gps_merge_back(const struct gps_area *area, struct gps_block *block);
/* A SPECULATIVE block becomes private, or is merged. With the lock, and gps_swap_lock. */
int gps_merge_own(const struct gps_area *area, struct gps_block *block);
void gps_merge_share(struct gps_block *block);
/* Merges those that copies have touched all over, none of them after a time: what they leave out
 * lies between tensors. */
void gps_merge_share_touched(struct gps_area *area, uint64_t until);

/* Another device may use the memory of `home`, too. Inside a gps_scope. */
void gps_merge_enable(int home, int accessor);
