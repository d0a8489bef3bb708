/*
 * write.h - a copy or fill by which the program writes device memory, as one description.
 *
 * The modules that look at it are in writes/writes.c. Kernels are never seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate.h"

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
    uint64_t reads;   /* so many bytes from there on, gaps and all */
    uint64_t stream;  /* explicit: never the null that means one stream or another */
    bool ordered;     /* it may end after the call */
    bool lasting;     /* the device may do it at any time from now on, as a node of a graph does */
    bool rough;       /* less may be written than `size` says */
    bool gaps;        /* not each byte of the range is written: its rows are */
    /* Or `count` ranges: `range` sets to, size, source and reads of the n-th from the list. */
    void (*range)(struct gps_write *one, uint64_t n);
    const void *list;
    const void *sources;
    const size_t *sizes;
    size_t count;
};

/* The number of ranges, and the n-th of them, made in `room` where it is not the write itself. */
static inline uint64_t gps_write_count(const struct gps_write *write) {
    return write->list ? write->count : 1;
}
static inline const struct gps_write *gps_write_nth(const struct gps_write *write, uint64_t n,
                                                    struct gps_write *room) {
    if (!write->list)
        return write;
    *room = *write;
    write->range(room, n);
    return room;
}
/* One range: whether its bytes come from host memory. */
bool gps_write_is_upload(const struct gps_write *one);

/* A module hears of writes that touch no memory of a rule and succeed, too; from now on. */
extern bool gps_write_all;
void gps_write_hear_all(void);
