/*
 * buffer.h - one buffer with frames in this process, as its writer or as a reader; the inside of
 * this room.
 *
 * The fields are under the room's lock where not said otherwise. A copy of ours ends in a function
 * that the driver calls, which touches only the fields that say so. So a buffer is freed when no
 * copy is under way, and otherwise stays for ever.
 */
#pragma once

#include <stdatomic.h>

#include "directory/frame_file.h"
#include "exchange.h"
#include "turn.h"

#define GPS_TOUCHED_MAX 16u

struct gps_buffer;
struct gps_scope;

/* A copy of ours that is under way. */
struct gps_frame_copy {
    struct gps_buffer *buffer;
    unsigned slot;
    uint64_t frame;
    _Atomic bool busy;
};

struct gps_buffer {
    struct gps_buffer *next;
    bool writes;
    uint64_t base, size, context;
    uint64_t slots, stride; /* where the first slot lies here, and from one to the next */
    uint64_t mapping;       /* a reader's: where it has mapped the region */
    struct gps_frames_head head;
    char name[GPS_NAME_BYTES];

    struct gps_turn turn;
    bool any;        /* any work may use it */
    bool in_graph;   /* a graph was given its address */
    unsigned inside; /* calls of the program's that use it and are under way */
    unsigned pinned; /* threads that wait with it, without the lock */
    bool gone;       /* the program has freed it, or its context has ended */
    uint64_t held;   /* a frame is about to be copied: until this time no other thread's call begins
                        to use the buffer. A time, because a handler may leave the wait by longjmp */
    int holder;      /* the thread that copies it */

    /* The program's streams that used it since our last copy. */
    struct {
        uint64_t stream;
        int thread; /* of a default stream that each thread has for itself; else 0 */
    } touched[GPS_TOUCHED_MAX];
    unsigned touched_count;
    bool crowded; /* more streams than that used it */
    bool left;    /* so did streams that the program has destroyed: `mark` is behind all of them */

    /* The driver's: a stream of ours, an event on a stream of the program's, and one behind our
     * last copy, which may still be under way. */
    uint64_t stream, mark, copied;
    bool pending;
    struct gps_frame_copy copies[GPS_FRAMES_SLOTS_MAX];
    _Atomic unsigned under_way;

    /* For the event log. */
    struct {
        uint64_t since;           /* when the first frame came of which no line tells; 0: none */
        uint64_t count, left_out; /* sums of the lines so far */
    } told;

    /* A writer's. */
    uint64_t frame; /* the newest that is published, or about to be */
    struct gps_frames_slot slot[GPS_FRAMES_SLOTS_MAX];
    struct gps_explained_frames *explained; /* or NULL */
    bool forsaken; /* EACH: the writer has waited for a first reader in vain */

    /* Under the file's lock. */
    struct gps_frame_file file;
    struct gps_frames_writer writer;
    struct gps_frames_reader reader;
    unsigned place;    /* of the reader */
    uint64_t late_for; /* nonce of the process for which it was reported to be late */
};

/* --- buffer.c --- */

#define GPS_BUFFER_NAP 100000u /* ns */

/* The room's lock. */
void gps_buffer_lock(void);
void gps_buffer_unlock(void);
static inline void gps_buffer_unlock_at(const char *end) {
    (void)end;
    gps_buffer_unlock();
}
/* Until the end of the block. */
#define GPS_BUFFERS_LOCKED()                                                                       \
    const char end_of_lock __attribute__((unused, cleanup(gps_buffer_unlock_at))) = 0;             \
    gps_buffer_lock()
void gps_buffer_file_lock(void);
void gps_buffer_file_unlock(void);

int gps_buffer_thread(void); /* this thread's number */

/* Makes the driver's objects. False: the driver has none. */
bool gps_buffer_equip(struct gps_buffer *buffer);
bool gps_buffer_follow_stream(struct gps_buffer *buffer, uint64_t stream);
/* Whether this thread can name the n-th stream that touched it: not another's default stream. */
bool gps_buffer_can_name(const struct gps_buffer *buffer, unsigned n);
/* Our stream's copies follow what the program's streams have. False: no order can be had. */
bool gps_buffer_follow(struct gps_buffer *buffer);
/* Copies a frame between buffer and slot, and has the driver call `done` after that. */
bool gps_buffer_copy(struct gps_buffer *buffer, unsigned slot, uint64_t frame,
                     void (*done)(void *copy));
/* Waits a moment for other threads and processes, without the lock and out of the scope, with the
 * program's signals let in: a handler that leaves it by longjmp has the program's context current.
 * False: the buffer is gone. */
bool gps_buffer_nap(struct gps_buffer *buffer, struct gps_scope *scope);
/* frames = each: tells once for each process that it is late. */
void gps_buffer_tell_late(struct gps_buffer *buffer, const struct gps_owner *whom);

/* --- how many frames go through it, for the event log; with the lock --- */

/* A frame is about to be published, read or left out: after a second the event log gets the number
 * of those before it. */
void gps_buffer_count(struct gps_buffer *buffer);
/* No more frames come: the event log gets the rest. */
void gps_buffer_count_last(struct gps_buffer *buffer);

/* --- publish.c and refresh.c; with the lock, and inside a scope of the buffer's context --- */

/* The writer's frame is whole: gives it to the readers. */
void gps_buffer_publish(struct gps_buffer *buffer, struct gps_scope *scope);
/* No slot is free for the frame: counts it as left out. */
void gps_buffer_leave_out(struct gps_buffer *buffer);
/* The reader begins to look at another frame: gets it. */
void gps_buffer_refresh(struct gps_buffer *buffer, struct gps_scope *scope);
