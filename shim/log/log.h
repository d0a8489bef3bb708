/*
 * log.h - reports, from a finding and its facts to one write(2).
 *
 * Owns where reports go (stderr or a file), their two formats (text in the manner of
 * compute-sanitizer, JSON lines) and the count of repeats: the same finding from the same stack is
 * written once and counted, and the counts come with the summary at the end.
 *
 * A report is formatted in memory of its own and written with one write, so that lines of processes
 * and threads never mix; a log file is opened (O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, mode
 * 0600) for each report and closed again, so no descriptor stays with the program. SIGPIPE and
 * SIGXFSZ are blocked around the write, and one that our own write raised is taken back. stderr is
 * written to only while descriptor 2 is what it was when the library was loaded, or is a terminal
 * or opened for writing only: programs that close it can have a socket or a database there. A write
 * that would block on a non-blocking descriptor is dropped and counted. errno is preserved. Safe
 * from any thread. No malloc.
 *
 * A process writes at most log_max bytes; then a notice, and findings are only counted.
 */
#ifndef GPS_LOG_H
#define GPS_LOG_H

#include "config/config.h"

struct gps_frame {
    uint64_t address;  /* in this process */
    uint64_t offset;   /* in the module's file address space */
    char module[128];  /* path, its end if longer */
    char build_id[41]; /* hex, or empty */
};

/* Another process that a report is about. */
struct gps_party {
    struct gps_owner owner;
    uint64_t since; /* when it opened, or exported; 0: not known */
};

/* An earlier event that matters. */
struct gps_prior {
    const char *what;              /* "allocated", "freed", ... */
    const struct gps_owner *owner; /* whose deed; NULL: this process's */
    uint64_t time;                 /* 0: not known */
    uint32_t trace;                /* the core's name for its stack, which it fills in below */
    const struct gps_frame *stack;
    unsigned stack_count;
};
#define GPS_PRIORS 4u

struct gps_report {
    enum gps_finding finding;
    const char *api;  /* the call as the user wrote it: "cudaFree"; NULL: none is under way */
    uint64_t pointer; /* 0: no field of it is written; likewise below */
    uint64_t size;
    const struct gps_id *region;
    const char *name; /* of the region */
    int device;       /* ordinal in this process; -1 */
    uint64_t context;
    const char *detail; /* one sentence with the specifics; what differs, why it was refused */
    const struct gps_party *others; /* processes this is about: holders, owner */
    unsigned other_count;
    uint64_t count; /* occurrences that it stands for; 0 is 1 */
    const struct gps_frame *stack;
    unsigned stack_count;
    struct gps_prior prior[GPS_PRIORS]; /* oldest first */
    unsigned prior_count;
    uint64_t stack_hash; /* the call site: equal ones are repeats; 0: not known, never a repeat */
};

/* One allocation, for allocation_log.h. */
struct gps_listed_line {
    uint64_t process; /* tells processes apart that have one pid, as before and after an exec */
    uint64_t number;  /* of it among those of the process, from 1 */
    const char *api;
    uint64_t pointer, size, context;
    int device;                    /* -1: not known */
    const char *kind;              /* "plain", or "pool" */
    const char *caller;            /* as the rules' glob sees it; "": in no module */
    uint64_t site;                 /* of its stack; 0: none */
    const struct gps_frame *stack; /* with the first line of a site only */
    unsigned stack_count;
};

/* At library load: remembers what descriptor 2 is. */
void gps_log_start(void);
/* At the first CUDA call, with the options that hold from now on; by one thread, before others
 * report to a log. Before it, and in a forked child before gps_log_open was called again, reports
 * go to stderr as text, level warning. In a forked child it forgets what the parent reported. */
void gps_log_open(const struct gps_options *options, const struct gps_owner *self);

/* Whether a report, of which only finding, api and stack_hash are known yet, is not to be written:
 * below log_level, or a repeat, which is counted here. Spares what filling in its frames costs. */
bool gps_log_settles(const struct gps_report *report);

/* Writes or counts one report. False when it was a repeat or below log_level. In JSON, "count" is
 * the number of occurrences that a line stands for, at the end all repeats of one call site; "site"
 * says which line it repeats. */
bool gps_log_report(const struct gps_report *report);

/* Writes it, if the log is one of JSON lines. Counts as no finding. */
void gps_log_allocation(const struct gps_listed_line *line);

/* Once at the end, if anything was reported: the counts of repeated findings and one summary line
 * ("========= GPUSHARE SUMMARY: 2 findings (1 error), 1 repeated"; in JSON, a line of the same keys
 * whose "finding" is null). Only in the process that reported: not in a child of vfork. */
void gps_log_summary(void);

/* The catalogue. */
const char *gps_finding_id(enum gps_finding finding);
enum gps_level gps_finding_level(enum gps_finding finding);
const char *gps_finding_sentence(enum gps_finding finding);
const char *gps_finding_hint(enum gps_finding finding);
const char *gps_level_name(enum gps_level level);

#endif
