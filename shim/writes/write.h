/*
 * write.h - copies and fills by which the program writes device memory, and who listens to them.
 *
 * Whoever has to know of them registers a listener while the process begins. Without one these
 * calls are not even hooked where a program looks them up, and elsewhere go on to the driver after
 * one load. Kernels are never seen.
 *
 * gps_write_begin, the driver's call, gps_write_end. No lock is held in between. Any thread; needs
 * no scope.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/gate.h"

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

/* Its ranges, and the n-th of them, made in `room` where it is not the write itself. */
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

/* Before the driver's call. False: *code is the answer, and neither the driver is called nor a
 * listener that comes later. `pass` is for the one listener that passes the gate. */
typedef bool gps_write_begin_fn(const struct gps_write *write, struct gps_gate_pass *pass,
                                int *code);
/* After the driver's call. */
typedef void gps_write_end_fn(const struct gps_write *write, const struct gps_gate_pass *pass,
                              int code);

/* The driver has refused it. */
typedef void gps_write_refused_fn(const struct gps_write *write, int code);

/* Whether a listener hears of writes that touch no memory of a rule and succeed, too. */
enum gps_write_heard { GPS_WRITE_NEAR, GPS_WRITE_ALL };

/* Only while the process begins; `end` may be NULL. Listeners begin in the order in which they
 * registered, and end in the reverse order. Who answers in place of the driver registers before all
 * who have something to end. Last comes one who hears only of what was refused. */
void gps_write_listen(gps_write_begin_fn *begin, gps_write_end_fn *end, enum gps_write_heard heard);
void gps_write_listen_refused(gps_write_refused_fn *refused);
extern unsigned gps_write_listeners; /* so many; constant once the process has begun */
extern bool gps_write_all;           /* one hears of all writes */
/* A listener hears of all writes from now on. */
void gps_write_hear_all(void);

/* True: call the driver, then gps_write_end. False: *code is the answer. */
bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code);
void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code);
/* Instead of both, of a write that nobody else hears of. */
void gps_write_refused(const struct gps_write *write, int code);
