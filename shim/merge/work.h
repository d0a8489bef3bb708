/*
 * work.h - work of the program's on memory: launches, copies and fills pass the gate.
 *
 * Only a process that merges has these calls hooked. Whatever memory the work may touch has got its
 * blocks by then. What a copy or a fill writes of a merged block makes the block private first: its
 * bytes are kept, and no other process sees the write. What the device may write at any time from
 * then on, as a node of a graph does, stays private. A copy from pageable memory that covers a
 * whole block of a rule with quiet = 0 is not made where the shared block has the same bytes
 * (load.h).
 */
#pragma once

#include "allocation.h"
#include "driver/driver_ops.h"
#include "exclusion.h"
#include "gate/streams.h"

/* Listens to the program's writes (writes/write.h), if it merges. After gps_merge_start. */
void gps_work_start(void);

/* SYNC_MEMOPS of the allocation that begins there: copies and fills of it that are no stream's wait
 * for their end. Inside a scope. */
void gps_work_set_synced(uint64_t pointer, bool synced);

/* What a call answered that waits for work: the end of a process that wrote what is merged. */
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

/* The same, where nothing is in the way: the thread's last work was on this stream, and all blocks
 * have memory. False: it is not so, and nothing was done. */
static inline bool gps_work_begin_at_once(uint64_t stream, struct gps_gate_pass *pass) {
    gps_gate_enter(pass, stream);
    if (__builtin_expect(
            !(atomic_load_explicit(&gps_gate_state, memory_order_relaxed) & GPS_GATE_BACK), 1) &&
        pass->slot && gps_streams_is_noted(pass->slot, stream))
        return true;
    gps_gate_leave(pass);
    return false;
}

static inline void gps_work_end(const struct gps_gate_pass *pass, int code) {
    gps_gate_leave(pass);
    gps_work_checked(code);
}
