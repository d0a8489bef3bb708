/*
 * call_counter.h - counts the calls that were seen, for `gpushare audit`.
 *
 * With mode = audit, a process counts itself in the audit's channel (log/channel.h) at its first
 * call, and adds to a row: so a killed process counts, without its end. Any thread, no lock.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "log/channel.h"

#define GPS_CALL_ROWS      63u
#define GPS_CALL_UNWATCHED 16u

struct gps_call_counters {
    _Atomic uint64_t processes; /* that used the GPU */
    uint64_t unused[7];
    struct {
        _Atomic uint64_t calls; /* of one process; of every 63rd one where there are more */
        _Atomic uint64_t pid;   /* of the last one of them */
        _Atomic uint64_t begun; /* how many of them have not noted their end */
        char name[40];          /* of the last one; terminated */
    } rows[GPS_CALL_ROWS];
    struct {
        _Atomic uint32_t state; /* 0: free, 1: about to have a name, 2: in use */
        char name[52];          /* of a function whose calls are not understood; terminated */
        _Atomic uint64_t calls;
    } unwatched[GPS_CALL_UNWATCHED];
};

static_assert(sizeof(struct gps_call_counters) <= GPS_CHANNEL_COUNTERS, "the channel has room");

extern _Atomic uint64_t *gps_call_counter; /* NULL: no audit counts */

static inline void gps_call_count(void) {
    if (__builtin_expect(gps_call_counter != NULL, 0))
        atomic_fetch_add_explicit(gps_call_counter, 1, memory_order_relaxed);
}

/* At the first call. `name`: what a person calls the program. */
void gps_call_counter_start(const char *name);
/* Notes the end of the process, when all is reported. */
void gps_call_counter_end(void);
/* Counts the calls of a function that this library does not understand, for all processes. NULL: no
 * audit counts, or there are too many such functions. */
_Atomic uint64_t *gps_call_counter_of(const char *name);
