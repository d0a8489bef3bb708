/*
 * log.c - decides which reports are written, and counts their repeats.
 *
 * Repeats are found without a lock in a table of call sites. A slot is claimed once, by compare and
 * swap of its key, and never released. The thread that claims a slot writes the report; a thread
 * that finds its key counts a repeat. The claimer fills in the facts for the summary and then marks
 * the slot as filled.
 *
 * The counts belong to the process state.pid. A forked child that has not called gps_log_open yet
 * writes every report and counts nothing. So does a vfork child, which shares its parent's memory.
 */
#include "log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "event_log.h"
#include "format.h"
#include "sink.h"
#include "util/clock.h"

#define SITES 256u

struct site {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t repeats;
    atomic_bool filled;
    /* Of its first report. */
    enum gps_finding finding;
    bool raised, ordinary;
    int device;
    uint64_t pointer, size;
    const char *api;
};

static struct {
    _Atomic pid_t pid; /* of the process that this state belongs to */
    atomic_bool open;
    _Atomic unsigned format, level;
    uint64_t max; /* bytes */
    struct gps_owner self;
    const char *arguments, *rank;
} state = {.level = GPS_LEVEL_WARNING, .max = UINT64_MAX};

/* What the process has reported. A forked child starts again from zero. */
static struct {
    _Atomic uint64_t findings;  /* reports that were not repeats */
    _Atomic uint64_t errors;    /* of these, reports of level error */
    _Atomic uint64_t lost;      /* reports that could not be written */
    _Atomic uint64_t unwritten; /* reports after log_max was reached */
    _Atomic uint64_t written;   /* bytes */
    atomic_bool full;           /* there were more call sites than the table of repeats holds */
    atomic_bool full_written, advice_written, summary_written;
    struct site sites[SITES];
} counts;

/* Whether the state is this process's: it belongs to the first process that calls this. */
static bool log_is_ours(void) {
    const pid_t self = getpid();
    pid_t owner = 0;
    return atomic_compare_exchange_strong(&state.pid, &owner, self) || owner == self;
}

void gps_log_open(const struct gps_options *options, const struct gps_owner *self,
                  const char *arguments, const char *rank) {
    int saved = errno;
    if (!log_is_ours())
        memset(&counts, 0, sizeof(counts));
    state.self = *self;
    state.arguments = arguments;
    state.rank = rank;
    state.self.command[GPS_COMM_BYTES - 1] = '\0';
    gps_sink_open(options->log, self->pid, state.self.command);
    atomic_store(&state.format, options->log_format);
    atomic_store(&state.level, options->log_level);
    state.max = options->log_max != 0 ? options->log_max : UINT64_MAX;
    atomic_store(&state.pid, getpid());
    atomic_store(&state.open, true);
    errno = saved;
}

/* --- repeats --- */

/* Never 0. The key depends on the finding and its level, too, so two findings of one call site are
 * not repeats, and an error is none of a warning. */
static uint64_t report_key(const struct gps_report *report) {
    const uint64_t level = report->ordinary ? 2u : report->raised;
    const uint64_t kind = (uint64_t)report->finding + 1 + level * GPS_FINDING_COUNT;
    uint64_t key = report->stack_hash ^ kind * 0x9e3779b97f4a7c15u;
    return key != 0 ? key : 1;
}

static void site_fill(struct site *site, const struct gps_report *report) {
    site->api = report->api;
    site->finding = report->finding;
    site->raised = report->raised;
    site->ordinary = report->ordinary;
    site->device = report->device;
    site->pointer = report->pointer;
    site->size = report->size;
    atomic_store(&site->filled, true);
}

/* Whether an equal report came before; if so, counts the repeat. Otherwise takes a slot for it. A
 * hash of 0 means that the call site is not known. */
static bool is_repeat(const struct gps_report *report) {
    const uint64_t key = report_key(report);
    if (report->stack_hash == 0)
        return false;
    for (unsigned i = 0; i < SITES; i++) {
        struct site *site = &counts.sites[(key + i) % SITES];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&site->key, &found, key)) {
            site_fill(site, report);
            return false;
        }
        if (found == key) {
            atomic_fetch_add(&site->repeats, 1);
            return true;
        }
    }
    atomic_store(&counts.full, true);
    return false;
}

/* --- writing --- */

/* Whether gps_log_open has set the options in this process. */
static bool log_is_open(void) {
    return atomic_load(&state.open) && log_is_ours();
}

static bool is_jsonl(void) {
    return log_is_open() && atomic_load(&state.format) == GPS_LOG_JSONL;
}

/* The line is formatted in mapped memory, because it may exceed a small stack. Without memory a
 * small buffer on the stack holds the most important parts. */
static bool log_line_put(const struct gps_line *line, uint64_t site, uint64_t time) {
    const size_t size = GPS_LOGLINE_BYTES;
    char *large = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char small[2048];
    const bool mapped = large != MAP_FAILED;
    const struct gps_stamp stamp = {.time = time,
                                    .pid = (uint32_t)getpid(),
                                    .tid = (uint32_t)syscall(SYS_gettid),
                                    .pid_ns = state.self.pid_ns,
                                    .command =
                                        state.self.command[0] != '\0' ? state.self.command : "?",
                                    .arguments = state.arguments,
                                    .rank = state.rank,
                                    .colour = gps_sink_colours(!log_is_open()),
                                    .site = site};
    const struct gps_text text =
        gps_format_line(mapped ? large : small, mapped ? size : sizeof(small), *line, &stamp,
                        is_jsonl() ? gps_format_jsonl : gps_format_text);
    atomic_fetch_add(&counts.written, text.length);
    const bool done = gps_sink_write(text.bytes, text.length, !log_is_open());
    if (mapped)
        munmap(large, size);
    return done;
}

/* Writes a line that is not a finding: a message about the log itself. */
static void put_notice(const char *title, const char *message) {
    log_line_put(&(struct gps_line){.report = {.device = -1}, .title = title, .notice = message}, 0,
                 gps_clock_now());
}

/* Writes that the log is full, once. */
static void put_full(void) {
    GPS_NEW_TEXT(said, 256);
    if (atomic_exchange(&counts.full_written, true))
        return;
    gps_text_str(&said, "the log of this process has reached log_max (");
    gps_text_size(&said, state.max);
    gps_text_str(&said, "); further findings are only counted");
    put_notice("GPUSHARE", said.bytes);
}

/* Writes how to get the names of functions, once. */
static void put_advice(const struct gps_report *report) {
    if (report->stack_count == 0 || is_jsonl() || atomic_exchange(&counts.advice_written, true))
        return;
    put_notice("GPUSHARE", "to see functions and lines: log_format = jsonl, then gpushare report "
                           "LOG");
}

static bool level_passes(enum gps_level level) {
    return level >= (log_is_open() ? atomic_load(&state.level) : (unsigned)GPS_LEVEL_WARNING);
}

bool gps_log_wants(const struct gps_report *report) {
    return level_passes(gps_report_level(report));
}

/* Adds ", by app (pid 12)" as a heading does, because several processes may share a terminal. */
void gps_log_notice(enum gps_level level, const char *message) {
    char signed_by[512];
    int saved = errno;
    struct gps_text text = GPS_TEXT(signed_by);
    gps_text_strs(&text, message, ", by ", state.self.command[0] ? state.self.command : "?");
    gps_text_add(&text, " (pid %u)", (unsigned)getpid());
    if (level_passes(level))
        put_notice("GPUSHARE", is_jsonl() ? message : signed_by);
    errno = saved;
}

bool gps_log_takes(const struct gps_report *report) {
    return gps_log_wants(report) && !(log_is_ours() && is_repeat(report));
}

void gps_log_report(const struct gps_report *report) {
    const int saved = errno;
    const bool ours = log_is_ours();
    if (ours)
        atomic_fetch_add(&counts.findings, 1);
    if (ours && gps_report_level(report) == GPS_LEVEL_ERROR)
        atomic_fetch_add(&counts.errors, 1);
    const uint64_t now = gps_clock_now();
    gps_event_log_write(&(struct gps_event_line){.what = "finding",
                                                 .time = now,
                                                 .region = report->region,
                                                 .name = report->name,
                                                 .size = report->size,
                                                 .report = report});
    if (ours && atomic_load(&counts.written) >= state.max) {
        put_full();
        atomic_fetch_add(&counts.unwritten, 1);
        gps_sink_lose();
    } else if (!log_line_put(&(struct gps_line){.report = *report},
                             report->stack_hash != 0 ? report_key(report) : 0, now) &&
               ours) {
        atomic_fetch_add(&counts.lost, 1);
    } else if (ours) {
        put_advice(report);
    }
    errno = saved;
}

/* --- the end --- */

/* Returns the number of repeats of a call site. As text it writes only
 * "double-free in CALL, first at 0x7f...: 3 more from the same call site". */
static uint64_t put_repeats(struct site *site) {
    const uint64_t repeats = atomic_load(&site->repeats);
    const struct gps_report first = {.finding = site->finding,
                                     .raised = site->raised,
                                     .ordinary = site->ordinary,
                                     .api = site->api,
                                     .pointer = site->pointer,
                                     .size = site->size,
                                     .device = site->device,
                                     .count = repeats,
                                     .detail = "further occurrences at the same call site"};
    if (repeats == 0)
        return 0;
    if (is_jsonl()) {
        log_line_put(&(struct gps_line){.report = first}, atomic_load(&site->key), gps_clock_now());
        return repeats;
    }
    GPS_NEW_TEXT(text, 256);
    gps_format_title(&text, &first);
    if (first.pointer != 0)
        gps_text_add(&text, ", first at 0x%lx", first.pointer);
    gps_text_add(&text, ": %lu more from the same call site", repeats);
    put_notice("GPUSHARE", text.bytes);
    return repeats;
}

/* "2 findings (1 error), 1 repeated", and the losses if there were any. */
static void put_summary(uint64_t findings, uint64_t repeated) {
    GPS_NEW_TEXT(text, 256);
    const uint64_t errors = atomic_load(&counts.errors), lost = atomic_load(&counts.lost),
                   unwritten = atomic_load(&counts.unwritten);
    gps_text_add(&text, "%lu finding%s (%lu error%s), %lu repeated", findings,
                 findings == 1 ? "" : "s", errors, errors == 1 ? "" : "s", repeated);
    if (lost != 0)
        gps_text_add(&text, ", %lu could not be written", lost);
    if (unwritten != 0)
        gps_text_add(&text, ", %lu not written (log_max)", unwritten);
    if (atomic_load(&counts.full))
        gps_text_str(&text, "; too many call sites to count the repeats of all");
    put_notice("GPUSHARE SUMMARY", text.bytes);
}

void gps_log_summary(void) {
    const uint64_t findings = atomic_load(&counts.findings);
    uint64_t repeated = 0;
    int saved = errno;
    if (!log_is_ours() || findings == 0 || atomic_exchange(&counts.summary_written, true))
        return;
    for (unsigned i = 0; i < SITES; i++)
        if (atomic_load(&counts.sites[i].filled))
            repeated += put_repeats(&counts.sites[i]);
    put_summary(findings, repeated);
    errno = saved;
}
