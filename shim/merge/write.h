/*
 * write.h - copies and fills by which the program writes device memory, where a rule asks for them.
 *
 * Only programs with a rule that shares memory read-only, or merges it (gps_write_seen), or with
 * `open_cache` have these calls hooked at all. What they write into a merged block makes the block
 * private first: its bytes are kept, and nobody else sees the write. A copy from pageable memory
 * that covers a whole block of a rule with quiet = 0 is not made where the shared block has the
 * same bytes. A write that the driver refused because importers have the region read-only is
 * reported. Kernels are never seen.
 *
 * In a process that learns (learn/learner.h) writes are noted, and nothing else is done.
 *
 * gps_write_begin, the driver's call, gps_write_end. No lock is held in between; in a process that
 * merges, the gate is passed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocation.h"
#include "config/config.h"
#include "driver/driver_ops.h"
#include "exclusion.h"
#include "gate/streams.h"
#include "process/program.h"

enum gps_write_kind {
    GPS_WRITE_UPLOAD, /* from host memory */
    GPS_WRITE_ANY,    /* from host or device memory: the driver knows */
    GPS_WRITE_OTHER,  /* from device memory, or a fill */
};

struct gps_write {
    enum gps_write_kind kind;
    uint64_t to, size;
    const void *from; /* UPLOAD, ANY, in one range; else NULL */
    uint64_t source;  /* device memory that is read, or an address that is none */
    uint64_t stream;  /* explicit: never the null that means one stream or another */
    bool ordered;     /* it may end after the call */
    /* `rows` ranges, each `pitch` behind the one before; 0 and 1 are one range. */
    uint64_t pitch, rows;
    /* Or `count` ranges: `range` sets to, size and source of the n-th from the list. */
    void (*range)(struct gps_write *one, uint64_t n);
    const void *list;
    const void *sources;
    const size_t *sizes;
    size_t count;
};

/* Its ranges, and the n-th of them: rows lie in one allocation, and are one range, gaps and all. */
uint64_t gps_write_count(const struct gps_write *write);
struct gps_write gps_write_nth(const struct gps_write *write, uint64_t n);

/* A rule of this program asks for its writes. Constant once the process has begun. */
extern bool gps_write_seen;
void gps_write_start(const struct gps_config *config, const struct gps_program *program);

/* It is from or to memory that the program has closed, and only open_cache keeps: the driver would
 * refuse it. */
bool gps_write_is_of_closed(const struct gps_write *write);

/* True: call the driver, then gps_write_end. False: *code is the answer. */
bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code);
void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code);

/* What a call answered that waits for work: the end of a process that wrote what is merged. */
static inline void gps_work_checked(int code) {
    if (__builtin_expect(code == GPS_ILLEGAL_ADDRESS, 0) && gps_merge_active)
        gps_exclusion_record();
}

/* Work other than copies and fills begins: a launch, a copy to the host. True: call the driver,
 * then gps_work_end. False: *code is the answer. */
bool gps_work_begin(uint64_t stream, bool copy, struct gps_gate_pass *pass, int *code);

/* The same, where nothing is in the way: the thread's last work was on this stream, and all blocks
 * have memory. False: it is not so, and nothing was done. */
static inline bool gps_work_begin_at_once(uint64_t stream, struct gps_gate_pass *pass) {
    if (!gps_gate_slot || !gps_streams_is_noted(gps_gate_slot, stream))
        return false;
    gps_gate_enter(pass);
    if (__builtin_expect(
            !(atomic_load_explicit(&gps_gate_state, memory_order_relaxed) & GPS_GATE_BACK), 1))
        return true;
    gps_gate_leave(pass);
    return false;
}

static inline void gps_work_end(const struct gps_gate_pass *pass, int code) {
    gps_gate_leave(pass);
    gps_work_checked(code);
}

void gps_write_reset(void); /* in a forked child */
