/*
 * log.h - writes reports. A report is a finding with its facts, and is written with one write(2).
 *
 * A report goes to stderr or to a log file, as text in the manner of compute-sanitizer or as a line
 * of JSON. The same finding from the same stack is a repeat: it is counted, not written, and the
 * summary at the end gives the count. After log_max bytes a process writes one notice and then only
 * counts findings.
 *
 * Each report is formatted in memory of its own and written at once, so lines of different threads
 * and processes never mix. sink.h describes how a write stays harmless to the program; a write that
 * would block is dropped and counted. errno is preserved. Safe from any thread. No malloc.
 */
#pragma once

#include "config/config.h"

struct gps_frame {
    uint64_t address;  /* in this process */
    uint64_t offset;   /* in the module's file address space */
    char module[128];  /* the path, or its end if it is longer; of a Python frame: of its source */
    char build_id[44]; /* hex, or empty */
    char function[64]; /* of a Python frame, or the name's beginning; empty: a native frame */
    uint32_t line;     /* of a Python frame; 0: not known */
};
static_assert(sizeof(struct gps_frame) == 256, "no padding: equal frames have equal bytes");

/* Another process that a report is about. */
struct gps_party {
    struct gps_owner owner;
    uint64_t since; /* when it opened, or exported; 0: not known */
    uint64_t place; /* where it opened (gps_slot.place); 0: not known */
};

/* An earlier event that explains the finding. */
struct gps_prior {
    const char *what;              /* "allocated", "freed", ... */
    const struct gps_owner *owner; /* the process that did it; NULL: this one */
    uint64_t time;                 /* 0: not known */
    uint32_t trace; /* the number of its stack (trace.h), from which reporter.c fills in `stack` */
    const struct gps_frame *stack;
    unsigned stack_count;
};
#define GPS_PRIORS 6u

struct gps_report {
    enum gps_finding finding;
    bool raised;      /* its level is the one of GPS_RAISED_LEVELS, where that has one */
    bool ordinary;    /* its level is INFO: a rule shares the memory, and nothing is lost by it */
    const char *api;  /* a literal, the call as the user wrote it; NULL: none */
    uint64_t pointer; /* 0: not known, as for the numbers below */
    uint64_t size;
    const struct gps_id *region;
    const char *name; /* of the region */
    int device;       /* ordinal in this process; -1: not known */
    uint64_t context;
    const char *detail; /* one sentence with the specifics: the difference, the reason */
    const char *hint;   /* where it is another than the catalogue's; else NULL */
    const struct gps_party *others; /* the other processes involved: users, owner */
    unsigned other_count;
    uint64_t count; /* occurrences that the report stands for; 0 means 1 */
    const struct gps_frame *stack;
    unsigned stack_count;
    struct gps_prior prior[GPS_PRIORS]; /* oldest first */
    unsigned prior_count;
    uint64_t stack_hash; /* the call site: equal ones are repeats; 0: not known, never a repeat */
    uint64_t variant;    /* distinguishes reports of one call site; 0: they are the same */
};

/* Sets the options at the first call: one thread calls it before others report. Before this
 * call, and in a forked child before it calls it again, reports of level warning and above go to
 * stderr as text. In a forked child it forgets the reports of the parent. `arguments`, those of the
 * program, and its `rank`, a number or empty, must stay valid. */
void gps_log_open(const struct gps_options *options, const struct gps_owner *self,
                  const char *arguments, const char *rank);

/* Whether log_level lets this report pass. */
bool gps_log_wants(const struct gps_report *report);

/* Whether a report is to be written: log_level lets it pass, and it is no repeat, which this call
 * counts. Its stack and the earlier events need not be filled in yet. */
bool gps_log_takes(const struct gps_report *report);

/* Writes a report that gps_log_takes let pass. In JSON, "count" is the number of occurrences that
 * a line stands for (at the end: all repeats of one call site), and lines of one call site have the
 * same "site". */
void gps_log_report(const struct gps_report *report);

/* Writes a line that is no finding, if log_level lets findings of this level pass. */
void gps_log_notice(enum gps_level level, const char *message);

/* Writes, once at the end and only if there was a report, the counts of repeated findings and one
 * summary line ("========= GPUSHARE SUMMARY: 2 findings (1 error), 1 repeated"; in JSON a line with
 * the same keys whose "finding" is null). Does nothing in a child of vfork. */
void gps_log_summary(void);

/* The catalogue. */
const char *gps_finding_id(enum gps_finding finding);
enum gps_level gps_finding_level(enum gps_finding finding);
const char *gps_finding_sentence(enum gps_finding finding);
const char *gps_finding_hint(enum gps_finding finding);
/* In which cases a report of it has a higher level, and which; NULL: in none. */
const char *gps_finding_raised(enum gps_finding finding, enum gps_level *level);
enum gps_level gps_report_level(const struct gps_report *report);
/* The hint for a report. A region that a rule made, which has a name, may have another one. */
const char *gps_report_hint(const struct gps_report *report);
const char *gps_level_name(enum gps_level level);
