/*
 * policy.h - decides about a call: (question, knowledge, mode) in, (verdict, finding) out.
 *
 * It is one pure function, without a driver, I/O, a lock or a state. Everything that it may depend
 * on is in the question; a test goes through all of its states as a table. Every finding about the
 * program comes from here.
 */
#pragma once

#include "registry/registry.h"

enum gps_ask {
    /* the program is about to: */
    GPS_ASK_FREE,    /* free a pointer */
    GPS_ASK_OPEN,    /* open a handle */
    GPS_ASK_EXPORT,  /* get the handle of a pointer */
    GPS_ASK_DESTROY, /* destroy an event */
    GPS_ASK_EXIT,    /* end, or destroy a context, with a region in it */
    /* the driver has refused to: */
    GPS_ASK_FREED,
    GPS_ASK_OPENED,
    GPS_ASK_CLOSED,
    GPS_ASK_EXPORTED,     /* give a memory handle */
    GPS_ASK_EVENT_SHARED, /* create an interprocess event, or give its handle */
    GPS_ASK_EVENT_OPENED, /* or it has opened one that it should not */
    GPS_ASK_EVENT_USED,   /* do anything with it */
    GPS_ASK_VMM_RELEASED,
    GPS_ASK_VMM_MAPPED, /* or made */
    GPS_ASK_VMM_UNMAPPED,
    GPS_ASK_VMM_EXPORTED,
    GPS_ASK_VMM_IMPORTED, /* by a descriptor; or a pool */
    GPS_ASK_VMM_UNRESERVED,
    GPS_ASK_COPIED,         /* copy or fill, or give access */
    GPS_ASK_POOL_ALLOCATED, /* give memory of a pool */
    GPS_ASK_POOL_FREED,     /* free it; or it has freed memory that is HELD */
    GPS_ASK_FORKED,         /* make any call in a child of a process that uses it */
    /* was done, and is worth a report: */
    GPS_ASK_NOTED_EXPORT,
    GPS_ASK_NOTED_OPEN,
    GPS_ASK_NOTED_DESTROY, /* of an event */
    GPS_ASK_NOTED_WAIT,    /* for an event */
    GPS_ASK_NOTED_RESET,   /* of a context */
    GPS_ASK_NOTED_POOL,    /* destroyed */
    GPS_ASK_NOTED_MAP,     /* of VMM memory */
    GPS_ASK_NOTED_REFUSAL, /* of a call for VMM memory or pools, by the driver */
    GPS_ASK_NOTED_END,     /* of the process */
    GPS_ASK_COUNT
};

/* The state of the pointer, region or event that the question is about. */
enum gps_known {
    GPS_KNOWN_NOTHING,
    GPS_KNOWN_EXPORTED,    /* ours, exported, no other process holds it */
    GPS_KNOWN_HELD,        /* ours, exported, other processes hold it */
    GPS_KNOWN_CACHED,      /* the same, but they only cache it: their programs have closed it */
    GPS_KNOWN_RESULT,      /* ours, a rule's with ready = free, not freed before */
    GPS_KNOWN_DEFERRED,    /* freed by the program; the memory waits for its importers */
    GPS_KNOWN_FREED,       /* freed, closed or destroyed before, and not made again since */
    GPS_KNOWN_INTERIOR,    /* an address inside the memory */
    GPS_KNOWN_OPEN_HERE,   /* another process's, open in this context already */
    GPS_KNOWN_OWN,         /* of this process itself */
    GPS_KNOWN_LIVE,        /* published by a process, open to importers */
    GPS_KNOWN_STALE,       /* its exporter has freed it */
    GPS_KNOWN_DEAD_OWNER,  /* published by a process that has ended */
    GPS_KNOWN_OPEN_THERE,  /* open in another context of this process */
    GPS_KNOWN_FLAGS,       /* the flags are not those that the driver takes */
    GPS_KNOWN_NAMESPACE,   /* the two processes do not share a namespace that they must */
    GPS_KNOWN_UNREACHABLE, /* on a device that the current one is no peer of */
    GPS_KNOWN_NO_CONTEXT,  /* this thread has none */
    GPS_KNOWN_BLOCK,       /* other allocations lie in its block */
    GPS_KNOWN_OPEN,        /* NOTED_END: opened, never closed; NOTED_POOL: memory of it is alive */
    GPS_KNOWN_UNBALANCED,  /* NOTED_END: opened more often than closed */
    GPS_KNOWN_UNEVEN,      /* no multiple of the granularity */
    GPS_KNOWN_TYPES,       /* made without the type of handle */
    GPS_KNOWN_MAPPED,      /* memory is mapped there */
    GPS_KNOWN_UNMAPPED,    /* NOTED_END: it was mapped, and has a reference; VMM_UNMAPPED, COPIED:
                              nothing is mapped there, which an unmap does not mind */
    GPS_KNOWN_CLOSED,      /* another process's, closed before, and not reused since */
    GPS_KNOWN_NO_ACCESS,   /* mapped without access for any device */
    GPS_KNOWN_NO_PEER,     /* the same for this device, which the program takes for a peer */
    GPS_KNOWN_IMPORTED,    /* of another process */
    GPS_KNOWN_LEFT_EXPORTED, /* NOTED_END: a descriptor of memory that is released is open */
    GPS_KNOWN_LEFT_IMPORTED, /* the same of another process's memory */
    GPS_KNOWN_FABRIC,        /* it was to have fabric handles */
    GPS_KNOWN_PARTLY,        /* of another process, reaching past the memory that is open */
    GPS_KNOWN_HOST,          /* main memory that is pinned */
    GPS_KNOWN_EVENT_OPEN,    /* NOTED_END: an event was opened, or exported, never destroyed */
    GPS_KNOWN_PLACE_HELD,    /* other memory is open in its place */
    GPS_KNOWN_NO_OUTPUT,     /* the call has no place for its result */
    GPS_KNOWN_SHUT_DOWN,     /* the driver has shut down */
    GPS_KNOWN_COUNT
};

enum gps_verdict {
    GPS_FORWARD,   /* the driver decides */
    GPS_DENY,      /* answer `code`, without the driver */
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
    bool exiting; /* the process ends: nothing can be deferred any more */
    bool linger;  /* EXIT: linger is not 0 */
};

#define GPS_NO_FINDING GPS_FINDING_COUNT

struct gps_answer {
    enum gps_verdict verdict;
    int code;                 /* DENY: the driver's own code for it (ops.h) */
    enum gps_finding finding; /* GPS_NO_FINDING */
};

struct gps_answer gps_policy(const struct gps_question *question);

/* The knowledge about an exported region, by its state and its users. The answer is for
 * GPS_ASK_FREE while it is CLOSING, else for GPS_ASK_EXIT and GPS_ASK_NOTED_RESET. */
enum gps_known gps_policy_known(const struct gps_export *region);

/* The words of a report for what gpushare does about memory that other processes hold. */
const char *gps_policy_consequence(const struct gps_answer *answer);
