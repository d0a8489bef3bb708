/*
 * policy.h - what to do about a call: (what is asked, what is known, mode) in, (verdict, finding)
 * out.
 *
 * One pure function: no CUDA, no I/O, no lock, no state. Everything that it may depend on is in the
 * question; a test goes through all of its states as a table.
 */
#ifndef GPS_POLICY_H
#define GPS_POLICY_H

#include "config.h"

enum gps_ask {
    GPS_ASK_FREE,    /* the program frees a pointer */
    GPS_ASK_OPEN,    /* the program opens a handle */
    GPS_ASK_OPENED,  /* the driver has refused to open a handle as invalid */
    GPS_ASK_DESTROY, /* the program destroys an event */
    GPS_ASK_EXIT,    /* the process ends, or a context goes, with a region in it */
};

/* What is known of the pointer, region or event that is asked about. */
enum gps_known {
    GPS_KNOWN_NOTHING,
    /* FREE */
    GPS_KNOWN_EXPORTED, /* ours, exported, nobody holds it */
    GPS_KNOWN_HELD,     /* ours, exported, other processes hold it; also EXIT */
    GPS_KNOWN_RESULT,   /* ours, a rule's with ready = free, not freed before; also EXIT */
    GPS_KNOWN_DEFERRED, /* freed by the program; the memory waits for its importers */
    GPS_KNOWN_FREED,    /* freed before, and not allocated since */
    /* OPEN, OPENED */
    GPS_KNOWN_LIVE,       /* published by a process, open to importers */
    GPS_KNOWN_OPEN_HERE,  /* open in this context already */
    GPS_KNOWN_STALE,      /* its exporter has freed it */
    GPS_KNOWN_DEAD_OWNER, /* published by a process that has ended */
    /* DESTROY */
    GPS_KNOWN_EVENT,
    GPS_KNOWN_DESTROYED,
    GPS_KNOWN_COUNT
};

enum gps_verdict {
    GPS_FORWARD,   /* the driver decides */
    GPS_DENY,      /* answer `code`; the driver is not asked */
    GPS_HAND_OVER, /* the result is final: keep it for its first importer */
    GPS_DEFER,     /* succeed now, free after the last importer */
    GPS_WAIT,      /* wait for the importers, then ask again with `waited` */
};

struct gps_question {
    enum gps_ask ask;
    enum gps_known known;
    enum gps_mode mode;
    enum gps_on_free on_free;
    bool waited;  /* the wait of an earlier verdict is over */
    bool exiting; /* the process ends: nothing can be put off */
    bool linger;  /* EXIT: linger is not 0 */
};

#define GPS_NO_FINDING GPS_FINDING_COUNT

struct gps_answer {
    enum gps_verdict verdict;
    int code;                 /* DENY: the driver's own code for it (ops.h) */
    enum gps_finding finding; /* GPS_NO_FINDING */
};

struct gps_answer gps_policy(const struct gps_question *question);

#endif
