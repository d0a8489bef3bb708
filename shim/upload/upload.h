/*
 * upload.h - regions of upload = once in this process: one object for each.
 *
 * Its creator leads (leader.h): what it writes is counted, and when all is written the region
 * becomes READY. An importer follows (follower.h): what it is about to upload is compared with what
 * is there. This module owns the objects, and who may work on one: a thread claims it for what it
 * does with the fields, and while it publishes the region or makes the mapping private.
 */
#pragma once

#include "config/config.h"
#include "coverage.h"
#include "gpushare/finding.h"

enum gps_upload_phase {
    GPS_UPLOAD_WRITING, /* not all of it is written */
    GPS_UPLOAD_READY,
    GPS_UPLOAD_UNSEEN,  /* leader: it is written in ways that cannot be followed; never READY */
    GPS_UPLOAD_PRIVATE, /* the memory is this process's own, and none of this matters any more */
};

struct gps_upload {
    struct gps_upload *next;
    uint64_t pointer, size; /* as the program asked */
    struct gps_id region;
    char name[GPS_NAME_BYTES];
    bool leads;
    unsigned users; /* this module's: threads that have it from gps_upload_get, and the table */
    bool busy;      /* this module's */
    /* Of the thread that has claimed it: */
    enum gps_upload_phase phase;
    bool ended;
    unsigned writers;             /* leader: writes under way */
    unsigned published;           /* leader: how often it became READY */
    struct gps_coverage coverage; /* leader */
    uint64_t wrote;               /* leader: when its last write ended; stall.h */
    uint64_t until;               /* follower: when its patience ends; 0: it has not waited yet */
    /* Constant: */
    uint64_t wait; /* the rule's */
    /* Constant, follower: */
    struct gps_owner creator;
    bool verify, uploaded; /* uploaded: the region is one of upload = once */
};

/* The creator's allocation of `size` bytes at `pointer`, VMM memory that has its region's name.
 * Nothing has been written to it. */
void gps_upload_lead(uint64_t pointer, uint64_t size, const char *name,
                     const struct gps_rule *rule);

/* A rule with upload = once has imported this region at `pointer`, for `size` bytes. */
void gps_upload_follow(uint64_t pointer, uint64_t size, const struct gps_region_record *record,
                       const struct gps_rule *rule);

/* The allocation is about to be freed, or closed: waits until nobody is busy with it. Nothing
 * happens where there is none. */
void gps_upload_end(uint64_t pointer);
/* The same, and closes the mapping; the driver's code. Inside a scope that has entered a context.
 */
int gps_upload_close(uint64_t pointer);

void gps_upload_reset(void); /* in a forked child */

/* --- for leader and follower --- */

/* The object of a mapping by its beginning, or NULL; to be put back. */
struct gps_upload *gps_upload_get(uint64_t pointer);
/* One that nobody has claimed, of which `is` says so; or NULL. To be put back. */
struct gps_upload *gps_upload_find(bool (*is)(const void *arg, const struct gps_upload *upload),
                                   const void *arg);
void gps_upload_put(struct gps_upload *upload);

/* Waits until nobody has claimed it. No lock is held between the two. */
void gps_upload_claim(struct gps_upload *upload);
void gps_upload_release(struct gps_upload *upload);

/* Of a follower's, its creator is in the report. Inside a scope. */
void gps_upload_report(const struct gps_upload *upload, enum gps_finding finding,
                       const char *detail);
