/*
 * history.h - the events of regions, played back from the event logs of many processes.
 *
 * Lines of all logs are sorted by time and followed one after the other. A region has a lane: all
 * memory of one name, or of one id where there is no name. A lifetime is one piece of memory, from
 * its creation until it is freed; a hold is one process's use of a lifetime, from its open to its
 * close. Logs can begin late and end early, as where a process was killed: a time that is not known
 * is HISTORY_OPEN. Strings are those of the lines. Findings come from event logs, from logs, or
 * from both, and count once.
 */
#pragma once

#include "logs/aggregate.h"

#define HISTORY_OPEN INT64_MIN
#define HISTORY_NONE SIZE_MAX

struct history_process {
    struct log_process facts;
    int64_t first, last; /* events */
    bool ended;          /* it wrote that it ends: it was not killed */
    int64_t merged;      /* bytes, as of the line that is being followed */
    size_t merge;        /* the index of its last history_merge, and 1; 0: none is open */
    int64_t made, most;  /* bytes of cuMemCreate: as of that line; the most at one time */
};

struct history_region {
    const char *name; /* NULL: it has none */
    const char *id;   /* of its first lifetime; NULL: no lifetime is known */
};

struct history_lifetime {
    size_t region, owner; /* the owner's index of a process; HISTORY_NONE: not known */
    int64_t size;
    int64_t created, exported, freed, gone;
    int64_t begin;   /* the first that is known of created, exported and the begin of the logs */
    const char *how; /* how it was freed first; NULL: it was not */
    bool made;       /* a token: its bytes are among those of cuMemCreate */
    bool late;       /* it was freed when no process had it open any more */
    bool kept;       /* its free left it to importers and the keeper */
};

struct history_hold {
    size_t lifetime, process;
    int64_t from, to;
};

struct history_mark {
    size_t process, region; /* HISTORY_NONE: of none */
    int64_t time;
    const char *finding, *api, *detail;
    enum gps_level level;
    const struct aggregate_group *group; /* its report; NULL: there is none in the logs */
};

/* How the page knows them, too. */
enum history_wait_kind {
    HISTORY_WAIT_FREE,
    HISTORY_WAIT_IMPORT,
    HISTORY_SUSPENDED, /* the process is; `to` may be HISTORY_OPEN */
};

struct history_wait {
    size_t process, region;
    int64_t from, to;
    enum history_wait_kind kind;
};

/* So many bytes of a process were merged from one change to the next. */
struct history_merge {
    size_t process;
    int64_t from, to, size;
};

/* Whole frames of a region that a process has published or read. */
struct history_frames {
    size_t process, region;
    int64_t from, to, count, left_out;
    bool writes;
    bool goes_on; /* the next of its kind begins where it ends */
};

/* Bytes of cuMemCreate that a process has, on all GPUs, from `time` on. */
struct history_made {
    size_t process;
    int64_t time, bytes;
};

/* Bytes of all regions, merged blocks and memory of cuMemCreate, from `time` on. */
struct history_step {
    int64_t time, used, without; /* without: were nothing shared */
};

struct history {
    struct history_process *processes;
    struct history_region *regions;
    struct history_lifetime *lifetimes;
    struct history_hold *holds;
    struct history_mark *marks;
    struct history_wait *waits;
    struct history_merge *merges;
    struct history_frames *frames;
    struct history_made *made;
    struct history_step *steps;
    size_t process_count, region_count, lifetime_count, hold_count, mark_count, wait_count,
        merge_count, frames_count, made_count, step_count;
    int64_t begin, end;
    size_t event_count; /* lines of event logs */
    struct aggregate aggregate;
    struct history_play *play; /* what is known while it is played: of history.c */
};

void history_begin(struct history *history);
/* A log_sink's function: takes lines of both kinds of log. */
const char *history_add(void *history, const char *text, size_t length);
/* Plays the lines. No line can be added after that. */
void history_end(struct history *history);
void history_free(struct history *history);
