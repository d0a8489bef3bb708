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
#include <unistd.h>

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
    int device;
    uint64_t pointer, size;
    char api[48];
};

static struct {
    _Atomic pid_t pid; /* of the process that this state belongs to */
    atomic_bool open;
    _Atomic unsigned format, level;
    uint64_t max; /* bytes */
    struct gps_owner self;
    _Atomic uint64_t findings, errors, lost, written, unwritten;
    atomic_bool full, full_log, summed_up;
    struct site sites[SITES];
} state = {.level = GPS_LEVEL_WARNING, .max = UINT64_MAX};

static bool is_ours(void) {
    return atomic_load(&state.pid) == getpid();
}

void gps_log_start(void) {
    int saved = errno;
    gps_sink_start();
    atomic_store(&state.pid, getpid());
    errno = saved;
}

/* A child's counts begin at 0. */
static void forget(void) {
    atomic_store(&state.findings, 0);
    atomic_store(&state.errors, 0);
    atomic_store(&state.lost, 0);
    atomic_store(&state.written, 0);
    atomic_store(&state.unwritten, 0);
    atomic_store(&state.full, false);
    atomic_store(&state.full_log, false);
    atomic_store(&state.summed_up, false);
    memset(state.sites, 0, sizeof(state.sites));
}

void gps_log_open(const struct gps_options *options, const struct gps_owner *self) {
    int saved = errno;
    if (!is_ours())
        forget();
    state.self = *self;
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

/* Never 0. The finding is mixed in: two findings of one call site are two. */
static uint64_t key_of(const struct gps_report *report) {
    uint64_t key = report->stack_hash ^ ((uint64_t)report->finding + 1) * 0x9e3779b97f4a7c15u;
    return key != 0 ? key : 1;
}

static void fill(struct site *site, const struct gps_report *report) {
    struct gps_text api = GPS_TEXT(site->api);
    gps_text_str(&api, report->api);
    site->finding = report->finding;
    site->device = report->device;
    site->pointer = report->pointer;
    site->size = report->size;
    atomic_store(&site->filled, true);
}

/* Whether an equal report came before; if so, counts the repeat. Otherwise `claim` takes a slot for
 * it. A hash of 0 means that the call site is not known. */
static bool is_repeat(const struct gps_report *report, bool claim) {
    uint64_t key = key_of(report);
    for (unsigned i = 0; i < SITES && report->stack_hash != 0; i++) {
        struct site *site = &state.sites[(key + i) % SITES];
        uint64_t found = claim ? 0 : atomic_load(&site->key);
        if (claim && atomic_compare_exchange_strong(&site->key, &found, key))
            fill(site, report);
        if (found == key)
            atomic_fetch_add(&site->repeats, 1);
        if (found == key || found == 0)
            return found == key;
    }
    if (claim && report->stack_hash != 0)
        atomic_store(&state.full, true);
    return false;
}

/* --- writing --- */

static struct gps_stamp stamp_now(void) {
    return (struct gps_stamp){.time = gps_clock_now(),
                              .pid = (uint32_t)getpid(),
                              .tid = (uint32_t)gettid(),
                              .pid_ns = state.self.pid_ns,
                              .command = state.self.command[0] != '\0' ? state.self.command : "?"};
}

/* Whether the options that gps_log_open gave hold in this process. */
static bool is_open(void) {
    return atomic_load(&state.open) && is_ours();
}

static bool is_jsonl(void) {
    return is_open() && atomic_load(&state.format) == GPS_LOG_JSONL;
}

static bool put(struct gps_text text) {
    atomic_fetch_add(&state.written, text.length);
    return is_open() ? gps_sink_write(text.bytes, text.length)
                     : gps_sink_write_stderr(text.bytes, text.length);
}

/* Writes once that the log is full. */
static void put_full(void) {
    char message[256];
    struct gps_text said = GPS_TEXT(message);
    struct gps_stamp stamp = stamp_now();
    if (atomic_exchange(&state.full_log, true))
        return;
    gps_text_str(&said, "the log of this process has reached log_max (");
    gps_text_size(&said, state.max);
    gps_text_str(&said, "); further findings are only counted");
    char buffer[1024];
    put(is_jsonl() ? gps_logline_notice_jsonl(buffer, sizeof(buffer), message, &stamp)
                   : gps_logline_notice_text(buffer, sizeof(buffer), message));
}

/* The line is formatted in mapped memory, because it may exceed a small stack. Without memory a
 * small buffer on the stack holds the most important parts. */
static bool put_report(const struct gps_report *report) {
    char *large =
        mmap(NULL, GPS_LOGLINE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char small[2048];
    char *buffer = large != MAP_FAILED ? large : small;
    const size_t size = large != MAP_FAILED ? GPS_LOGLINE_BYTES : sizeof(small);
    struct gps_stamp stamp = stamp_now();
    bool done = put(is_jsonl() ? gps_logline_jsonl(buffer, size, report, &stamp,
                                                   report->stack_hash != 0 ? key_of(report) : 0)
                               : gps_logline_text(buffer, size, report, &stamp));
    if (large != MAP_FAILED)
        munmap(large, GPS_LOGLINE_BYTES);
    return done;
}

void gps_log_allocation(const struct gps_listed_line *line) {
    int saved = errno;
    const size_t size = line->stack_count != 0 ? GPS_LOGLINE_BYTES : 2048;
    char *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct gps_stamp stamp = stamp_now();
    if (buffer != MAP_FAILED && is_jsonl() && atomic_load(&state.written) < state.max)
        put(gps_logline_allocation(buffer, size, line, &stamp));
    else if (is_jsonl())
        put_full();
    if (buffer != MAP_FAILED)
        munmap(buffer, size);
    errno = saved;
}

static void count(const struct gps_report *report) {
    atomic_fetch_add(&state.findings, 1);
    if (gps_finding_level(report->finding) == GPS_LEVEL_ERROR)
        atomic_fetch_add(&state.errors, 1);
}

static bool is_wanted(enum gps_finding finding) {
    unsigned least = is_open() ? atomic_load(&state.level) : (unsigned)GPS_LEVEL_WARNING;
    return gps_finding_level(finding) >= least;
}

bool gps_log_skips(const struct gps_report *report) {
    return !is_wanted(report->finding) || (is_ours() && is_repeat(report, false));
}

bool gps_log_report(const struct gps_report *report) {
    int saved = errno;
    bool ours = is_ours();
    if (!is_wanted(report->finding) || (ours && is_repeat(report, true)))
        return false;
    if (ours)
        count(report);
    if (ours && atomic_load(&state.written) >= state.max) {
        put_full();
        atomic_fetch_add(&state.unwritten, 1);
    } else if (!put_report(report) && ours) {
        atomic_fetch_add(&state.lost, 1);
    }
    errno = saved;
    return true;
}

/* --- the end --- */

static uint64_t put_repeats(struct site *site) {
    uint64_t repeats = atomic_load(&site->repeats);
    const struct gps_report first = {.finding = site->finding,
                                     .api = site->api[0] != '\0' ? site->api : NULL,
                                     .pointer = site->pointer,
                                     .size = site->size,
                                     .device = site->device,
                                     .count = repeats,
                                     .detail = "further occurrences at the same call site"};
    struct gps_stamp stamp = stamp_now();
    if (repeats == 0)
        return 0;
    char buffer[1024];
    if (is_jsonl())
        put(gps_logline_jsonl(buffer, sizeof(buffer), &first, &stamp, atomic_load(&site->key)));
    else
        put(gps_logline_repeat_text(buffer, sizeof(buffer), &first, repeats));
    return repeats;
}

static void put_summary(const struct gps_tally *tally) {
    struct gps_stamp stamp = stamp_now();
    char buffer[1024];
    if (is_jsonl())
        put(gps_logline_summary_jsonl(buffer, sizeof(buffer), tally, &stamp));
    else
        put(gps_logline_summary_text(buffer, sizeof(buffer), tally));
}

void gps_log_summary(void) {
    struct gps_tally tally = {.findings = atomic_load(&state.findings),
                              .errors = atomic_load(&state.errors),
                              .full = atomic_load(&state.full)};
    int saved = errno;
    if (!is_ours() || tally.findings == 0 || atomic_exchange(&state.summed_up, true))
        return;
    for (unsigned i = 0; i < SITES; i++)
        if (atomic_load(&state.sites[i].filled))
            tally.repeated += put_repeats(&state.sites[i]);
    tally.lost = atomic_load(&state.lost);
    tally.unwritten = atomic_load(&state.unwritten);
    put_summary(&tally);
    errno = saved;
}
