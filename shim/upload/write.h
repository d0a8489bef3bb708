/*
 * write.h - copies and fills by which the program writes device memory, where a rule asks for them.
 *
 * Only programs with a rule of backing = vmm that shares read-only, or waits until all is written,
 * have these calls hooked at all (gps_write_seen); and of those only what goes into VMM memory
 * comes here (gps_write_concerns). What it means for a region that is uploaded once, leader.h and
 * follower.h say; a write that the driver refused because importers have the region read-only is
 * reported. Kernels are never seen.
 *
 * gps_write_begin, the driver's call, gps_write_end. No lock is held in between.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum gps_write_kind {
    GPS_WRITE_UPLOAD, /* from host memory */
    GPS_WRITE_ANY,    /* from host or device memory: the driver knows */
    GPS_WRITE_OTHER,  /* from device memory, or a fill */
    GPS_WRITE_SOME,   /* somewhere in the range, not all of it */
};

struct gps_write {
    enum gps_write_kind kind;
    uint64_t to, size;
    const void *from; /* UPLOAD, ANY */
    uint64_t stream;  /* explicit: never the null that means one stream or another */
    bool ordered;     /* it may end after the call */
    /* `rows` ranges, each `pitch` behind the one before; 0 and 1 are one range. */
    uint64_t pitch, rows;
    /* Or `count` ranges. */
    const unsigned long long *list;
    const size_t *sizes;
    size_t count;
};

/* A rule of this program asks for its writes. Constant once the process has begun. */
extern bool gps_write_seen;
void gps_write_start(const struct gps_config *config, const struct gps_owner *self);

/* Whether any of it goes into VMM memory. */
bool gps_write_concerns(const struct gps_write *write);

/* True: call the driver, then gps_write_end. False: *code is the answer. */
bool gps_write_begin(const struct gps_write *write, int *code);
void gps_write_end(const struct gps_write *write, int code);

void gps_write_reset(void); /* in a forked child */
