/*
 * work.h - work of the program's on memory: launches, copies and fills pass the gate.
 *
 * Only a process that merges has these calls hooked. All memory that the work may touch has its
 * blocks mapped by then. What a copy or a fill writes of a merged block makes the block private
 * first: its bytes are kept, and no other process sees the write. A block that the device may write
 * at any time from then on, as a node of a graph does, stays private. A copy from pageable memory
 * that covers a whole block of a rule with quiet = 0 is not made where the shared block has the
 * same bytes (load.h).
 */
#pragma once

#include "allocation.h"
#include "driver/driver_ops.h"
#include "exclusion.h"
#include "gate/streams.h"
#include "gate/write.h"

/* A copy or fill, in a process with a gate: as gps_writes_begin and its end. */
bool gps_work_begin_write(const struct gps_write *write, struct gps_gate_pass *pass, int *code);
void gps_work_end_write(const struct gps_write *write, const struct gps_gate_pass *pass, int code);

/* SYNC_MEMOPS of the allocation that begins there: copies and fills of it that are no stream's wait
 * for their end. Inside a scope. */
void gps_work_set_synced(uint64_t pointer, bool synced);

/* Checks the code of a call that waits for work: it ends a process that wrote merged memory. */
static inline void gps_work_checked(int code) {
    if (__builtin_expect(code == GPS_ILLEGAL_ADDRESS, 0) && gps_merge_active)
        gps_exclusion_record();
}

/* Whether the range begins in merged memory and reaches past the end of its allocation, where the
 * driver does not refuse it. */
bool gps_work_reads_past_end(uint64_t from, uint64_t size);
static inline bool gps_work_read_is_refused(uint64_t from, uint64_t size) {
    return gps_area_padded_near(from, size) && gps_work_reads_past_end(from, size);
}

/* Work other than copies and fills begins: a launch, a copy to the host. True: call the driver,
 * then gps_work_end. False: *code is the answer. */
bool gps_work_begin(uint64_t stream, bool copy, struct gps_gate_pass *pass, int *code);

/* The same of any work, where nothing is in the way: the thread is in no pass and has noted the
 * stream (`context`: of a default stream the current one, else 0), the gate is open, and all blocks
 * have memory. `here`: an address in the caller's frame. Then gps_work_end_quickly. NULL: it is not
 * so, and nothing was done. */
static inline struct gps_gate_slot *gps_work_quickly(uint64_t stream, uint64_t context,
                                                     uintptr_t here) {
    struct gps_gate_slot *slot = gps_gate_slot;
    if (!slot || atomic_load_explicit(&slot->inside, memory_order_relaxed))
        return NULL;
    atomic_store_explicit(&slot->inside, here, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(!atomic_load_explicit(&gps_gate_state, memory_order_acquire), 1) &&
        gps_streams_is_noted(slot, stream, context))
        return slot;
    atomic_store_explicit(&slot->inside, 0, memory_order_release);
    return NULL;
}

static inline void gps_work_end_quickly(struct gps_gate_slot *slot, int code) {
    atomic_store_explicit(&slot->inside, 0, memory_order_release);
    gps_work_checked(code);
}

static inline void gps_work_end(const struct gps_gate_pass *pass, int code) {
    gps_gate_leave(pass);
    gps_work_checked(code);
}
