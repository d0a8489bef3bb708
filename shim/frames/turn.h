/*
 * turn.h - where a frame ends, by one program's touches of one buffer and its waits.
 *
 * A program touches the buffer, and waits. A thread's first touch of a frame is known again: when
 * it comes again after a wait, the frame before is whole. Where the last frames all had the same
 * number of waits, the last of these ends a frame at once; where several threads draw, only if as
 * many touches have come as in the frames before. A wait counts once after a touch, however often
 * the program asks. A frame that goes on behind what seemed to be its last wait was told half
 * drawn: each of these doubles how many frames must agree from then on.
 *
 * Pure functions on the caller's struct; all zeros is a program that has done nothing yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPS_TURN_SEEN     16u /* touches of a frame that are told apart */
#define GPS_TURN_THREADS  8u
#define GPS_TURN_PATIENCE 16u
#define GPS_TURN_ALIKE    8u /* frames with one number of waits, before that number ends one */

/* The touch with which a thread begins its part of a frame. */
struct gps_turn_first {
    int thread; /* 0: free */
    uint64_t key;
    bool came; /* in this frame */
};

/* The number that the last `alike` frames had. */
struct gps_turn_usual {
    unsigned number, alike;
};

struct gps_turn {
    struct gps_turn_first firsts[GPS_TURN_THREADS];
    uint64_t seen[GPS_TURN_SEEN]; /* touches of this frame, by kind and place */
    unsigned count;               /* of `seen` */
    unsigned again; /* touches after a wait that were seen before, and are no thread's first */
    unsigned touches, waits; /* of this frame; a wait counts after a touch */
    struct gps_turn_usual usual_touches, usual_waits;
    unsigned fixed; /* frame_waits; 0: the number is found out */
    bool touched;   /* since the last wait */
    bool waits_at_all;
    bool ended;      /* its last wait has come: the next touch begins another one */
    unsigned broken; /* frames that went on behind their last wait */
    uint64_t odd;    /* frames that had another number of waits than those before */
};

/* A thread of the writer's touches the buffer; `key` says how and where, and is not 0. True: the
 * frame before is whole, and was not told yet. */
bool gps_turn_touch(struct gps_turn *turn, uint64_t key, int thread);
/* The writer has waited for its work on the buffer. True: the frame is whole. */
bool gps_turn_wait(struct gps_turn *turn);
/* Whether more than one thread has drawn, now or before. */
bool gps_turn_has_threads(const struct gps_turn *turn);
/* How many waits a frame has: the fixed number, or that of the last frames. 0: not known. */
unsigned gps_turn_number_of_waits(const struct gps_turn *turn);
/* Whether the touches so far are a whole frame, as far as is known, that was not told yet: the
 * program frees the buffer, or ends. */
bool gps_turn_is_whole(const struct gps_turn *turn);

/* The reader touches its buffer. True: it begins to look at another frame. */
bool gps_turn_look(struct gps_turn *turn, uint64_t key);
/* The reader has waited. */
void gps_turn_looked(struct gps_turn *turn);
