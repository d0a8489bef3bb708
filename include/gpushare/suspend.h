/*
 * suspend.h - how the tool tells a process to let go of shared memory, byte for byte.
 *
 * A process with `suspend = on` has two files beside its own in procs/. <owner>.order is the
 * tool's: whoever gives orders holds an OFD lock on all of it, so that there is one at a time and
 * its death is seen. <owner>.answer is the process's. Each is one struct, written by one pwrite. A
 * struct whose checksum is wrong is being written at this moment.
 *
 * Integers and times are as in region.h.
 */
#ifndef GPUSHARE_SUSPEND_H
#define GPUSHARE_SUSPEND_H

#include "gpushare/region.h"

#define GPS_ORDER_MAGIC  "GPSORDR"
#define GPS_ANSWER_MAGIC "GPSANSW"

enum gps_order_ask {
    GPS_ORDER_CHECK = 1,  /* say whether it could be done */
    GPS_ORDER_LET_GO = 2, /* as long as the lock is held: else memory is taken again */
    GPS_ORDER_KEEP = 3,   /* the same, whether the lock is held or not */
    GPS_ORDER_TAKE = 4,   /* take memory again, and go on */
    GPS_ORDER_ROOM = 5,   /* hold the lock of its GPU's room (directory/room_lock.h) while this lock
                             is held */
    GPS_ORDER_RESTORE = 6, /* the driver is about to restore it: hold that until TAKE */
    GPS_ORDER_NO_ROOM = 7, /* let go of it */
};

struct gps_order {
    char magic[8]; /* GPS_ORDER_MAGIC */
    uint32_t version;
    uint32_t ask;     /* enum gps_order_ask */
    uint64_t serial;  /* another one for each order */
    uint64_t timeout; /* ns, for calls and work under way to end */
    uint64_t freed;   /* KEEP: the bytes that its checkpoint freed on the card; 0: none was made */
    uint32_t flags;   /* LET_GO: enum gps_order_flag */
    uint8_t reserved[12];
    uint64_t checksum; /* of the bytes before it */
};

enum gps_order_flag {
    GPS_ORDER_KEEP_ON_GPU = 1, /* merged blocks that nobody else runs with, too */
};

enum gps_answer_state {
    GPS_ANSWER_RUNS = 1,   /* it runs; `reason` is empty: it could let go */
    GPS_ANSWER_LEAVES = 2, /* it waits for calls and work that are under way */
    GPS_ANSWER_GONE = 3,   /* it has let go, and its calls wait */
    GPS_ANSWER_TAKES = 4,  /* it takes memory again */
};

struct gps_answer_file {
    char magic[8]; /* GPS_ANSWER_MAGIC */
    uint32_t version;
    uint32_t state;   /* enum gps_answer_state */
    uint64_t serial;  /* of the order that it answers; 0: none */
    uint64_t since;   /* when the state began */
    uint64_t own;     /* bytes on its GPU that it has for itself, as far as gpushare knows */
    uint64_t evicted; /* GONE: bytes that it has let go of */
    uint64_t freed;   /* GONE: as its order says */
    uint8_t device[GPS_UUID_BYTES]; /* the GPU that it uses; zero: none */
    char reason[400];   /* RUNS: why it cannot let go, and what to do; TAKES: what it waits for;
                           GONE, after ROOM: who has the lock of its GPU's room; empty: it has it */
    uint64_t copied;    /* GONE: bytes that it copied into main memory itself, and not the driver */
    uint64_t offloaded; /* GONE: bytes of merged blocks that it has taken off the GPU for all, for
                           nobody else ran with them */
    uint64_t kept;      /* of its copies, that are in main memory now */
    uint64_t needs;     /* bytes that are free on its GPU when it is restored, or it is lost; 0: it
                           has no context, or is of an older version */
    uint64_t checksum;  /* of the bytes before it */
};

static_assert(sizeof(struct gps_order) == 64, "layout");
static_assert(sizeof(struct gps_answer_file) == 512, "layout");

#endif
