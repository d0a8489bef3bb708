#include "event_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/record.h"
#include "format.h"
#include "log.h"
#include "sink.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "util/forgotten.h"
#include "util/text.h"

static struct {
    _Atomic pid_t pid; /* of the process that writes; 0: none does */
    _Atomic int fd;    /* of the file below; -1: none */
    dev_t device;
    ino_t inode;
    _Atomic uint64_t written; /* bytes */
    uint64_t max;
    atomic_bool full;
    atomic_bool begun; /* the event with the program's arguments is written */
    const char *arguments;
    char path[GPS_SINK_PATH];
    char process[160]; /* the members with the writing process */
} state = {.fd = -1};

/* --- the file --- */

static void give_up(const char *why) {
    atomic_store(&state.pid, 0);
    gps_sink_complain("event log ", state.path, why, "no further event is written");
}

/* Whether the descriptor is still that of our file, and the file still has a name. */
static bool is_file(int fd) {
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == state.device &&
           info.st_ino == state.inode && info.st_nlink != 0;
}

/* When two threads open the file at once, one of them closes its descriptor again. */
static int event_log_reopen(int old) {
    const char *why = NULL;
    struct stat info;
    int fd = gps_sink_open_file(state.path, &why);
    if (fd < 0 || fstat(fd, &info) != 0) {
        give_up(why ? why : gps_error_text(errno));
        return -1;
    }
    fd = gps_descriptor_move_high(fd);
    state.device = info.st_dev;
    state.inode = info.st_ino;
    if (atomic_compare_exchange_strong(&state.fd, &old, fd))
        return fd;
    close(fd);
    return old;
}

static int descriptor(void) {
    const int fd = atomic_load(&state.fd);
    return is_file(fd) ? fd : event_log_reopen(fd);
}

/* "pid":12,"pid_ns":4026531836,"process":"00ab...","command":"app" */
static void event_log_describe(const struct gps_owner *self) {
    struct gps_text text = GPS_TEXT(state.process);
    gps_text_add(&text, ",\"pid\":%u,\"pid_ns\":%lu,\"process\":\"%016lx\",\"command\":", self->pid,
                 self->pid_ns, self->nonce);
    gps_text_json(&text, self->command[0] != '\0' ? self->command : "?");
}

/* A forked child has inherited the parent's descriptor. With %p in the path it has another file. */
static void close_inherited(void) {
    const int fd = atomic_exchange(&state.fd, -1);
    if (is_file(fd))
        close(fd);
}

void gps_event_log_open(const struct gps_options *options, const struct gps_owner *self,
                        const char *arguments) {
    atomic_store(&state.pid, 0);
    close_inherited();
    if (options->mode == GPS_MODE_OFF || strcmp(options->event_log, "off") == 0)
        return;
    gps_sink_path(state.path, options->event_log, self->pid, self->command);
    event_log_describe(self);
    state.max = options->log_max != 0 ? options->log_max : UINT64_MAX;
    atomic_store(&state.written, 0);
    atomic_store(&state.full, false);
    atomic_store(&state.begun, false);
    state.arguments = arguments;
    atomic_store(&state.pid, getpid());
    (void)descriptor();
}

/* --- a line --- */

static void event_add_string(struct gps_text *text, const char *key, const char *value) {
    if (!value || value[0] == '\0')
        return;
    gps_text_strs(text, ",\"", key, "\":");
    gps_text_json(text, value);
}

static void event_add_number(struct gps_text *text, const char *key, uint64_t value) {
    if (value == 0)
        return;
    gps_text_strs(text, ",\"", key, "\":");
    gps_text_dec(text, value);
}

static void event_add_subject(struct gps_text *text, const struct gps_event_line *line) {
    char id[GPS_ID_HEX], uuid[GPS_UUID_TEXT];
    if (line->region) {
        gps_id_format(line->region, id);
        gps_text_strs(text, ",\"region\":\"", id, "\"");
    }
    event_add_string(text, "name", line->name);
    event_add_number(text, "size", line->size);
    event_add_number(text, "saved", line->saved);
    event_add_number(text, "ns", line->ns);
    if (line->device) {
        gps_format_uuid(line->device, uuid);
        gps_text_strs(text, ",\"device\":\"", uuid, "\"");
    }
    event_add_string(text, "how", line->how);
    event_add_number(text, "count", line->count);
    event_add_number(text, "left_out", line->left_out);
}

static void add_finding(struct gps_text *text, const struct gps_report *report) {
    GPS_NEW_TEXT(bare, 64);
    event_add_string(text, "finding", gps_finding_id(report->finding));
    event_add_string(text, "level", gps_level_name(gps_report_level(report)));
    gps_format_api(&bare, report->api);
    event_add_string(text, "api", bare.bytes);
    event_add_string(text, "detail", report->detail);
}

static void format(struct gps_text *text, const struct gps_event_line *line) {
    gps_text_str(text, "{\"ts\":\"");
    gps_text_time(text, line->time != 0 ? line->time : gps_clock_now());
    gps_text_strs(text, "\",\"event\":\"", line->what, "\"", state.process);
    event_add_subject(text, line);
    if (line->report)
        add_finding(text, line->report);
    event_add_string(text, "arguments", line->arguments);
    gps_text_str(text, "}\n");
}

/* The program does not wait for a slow reader of a FIFO: such a reader loses events. */
static void event_line_put(const struct gps_event_line *line) {
    GPS_NEW_TEXT(text, 2048);
    const int fd = descriptor();
    if (fd < 0)
        return;
    format(&text, line);
    if (text.cut)
        return;
    const int error = gps_sink_put(fd, text.bytes, text.length);
    if (error != 0 && error != EAGAIN)
        give_up(gps_error_text(error));
    atomic_fetch_add(&state.written, text.length);
}

bool gps_event_log_is_on(void) {
    return atomic_load_explicit(&state.pid, memory_order_relaxed) != 0;
}

void gps_event_log_write(const struct gps_event_line *line) {
    const pid_t writer = atomic_load_explicit(&state.pid, memory_order_relaxed);
    const int saved = errno;
    if (writer == 0 || writer != getpid())
        return;
    if (!atomic_load(&state.begun) && !atomic_exchange(&state.begun, true))
        event_line_put(&(struct gps_event_line){.what = "began", .arguments = state.arguments});
    if (atomic_load(&state.written) < state.max)
        event_line_put(line);
    else if (!atomic_exchange(&state.full, true))
        event_line_put(&(struct gps_event_line){.what = "full"});
    errno = saved;
}

/* --- bytes that are merged --- */

static struct {
    _Atomic uint64_t merged, saved, unmerged; /* since the last event */
    _Atomic uint64_t now;
    _Atomic uint64_t *most; /* the greatest `now` is kept there, or NULL */
} sums;
GPS_FORGOTTEN(sums);

void gps_merged_sum_keep(uint64_t *most) {
    sums.most = (_Atomic uint64_t *)most;
}

void gps_merged_sum_merged(uint64_t bytes, uint64_t saved) {
    atomic_fetch_add(&sums.saved, saved);
    atomic_fetch_add(&sums.merged, bytes);
    const uint64_t now = atomic_fetch_add(&sums.now, bytes) + bytes;
    uint64_t most = sums.most ? atomic_load(sums.most) : UINT64_MAX;
    while (most < now && !atomic_compare_exchange_weak(sums.most, &most, now))
        ;
}

void gps_merged_sum_private(uint64_t bytes) {
    atomic_fetch_add(&sums.unmerged, bytes);
    atomic_fetch_sub(&sums.now, bytes);
}

void gps_merged_sum_log(void) {
    const uint64_t merged = atomic_exchange(&sums.merged, 0);
    const uint64_t saved = atomic_exchange(&sums.saved, 0);
    const uint64_t unmerged = atomic_exchange(&sums.unmerged, 0);
    if (merged != 0)
        gps_event_log_write(
            &(struct gps_event_line){.what = "merged", .size = merged, .saved = saved});
    if (unmerged != 0)
        gps_event_log_write(&(struct gps_event_line){.what = "unmerged", .size = unmerged});
}
