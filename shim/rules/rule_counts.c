#include "rule_counts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "directory/exclusions.h"
#include "driver/driver_ops.h"
#include "frames/exchange.h"
#include "gpushare/explained.h"
#include "log/event_log.h"
#include "log/format.h"
#include "merge/allocation.h"
#include "merge/own_bytes.h"
#include "merge/steady.h"
#include "process/caller.h"
#include "process/process.h"
#include "registry/registry.h"
#include "stack/call.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"
#include "util/text.h"

bool gps_rule_counts_active;
GPS_FORGOTTEN(gps_rule_counts_active);

static struct {
    GPS_LOCK(GPS_RANK_RULE_COUNTS) lock;
    struct gps_explained *file;
} state;
GPS_FORGOTTEN(state);

/* The row of the allocation that a rule has just left private, in this thread; NULL: none. */
static __thread struct gps_explained_row *left_private;

/* Allocates the file's blocks before it is mapped: a full file system must not end the program, nor
 * must SIGXFSZ, which a file over the limit raises. */
static bool explained_make_room(int fd) {
    const size_t size = sizeof(struct gps_explained);
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur >= size &&
           fallocate(fd, 0, 0, (off_t)size) == 0;
}

/* A file without room stays empty, which the tool reports. */
static struct gps_explained *explained_map_file(const char *path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    void *file = MAP_FAILED;
    if (fd >= 0 && explained_make_room(fd))
        file = mmap(NULL, sizeof(struct gps_explained), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return file == MAP_FAILED ? NULL : file;
}

static void explained_copy_text(char *to, size_t size, const char *from) {
    struct gps_text text = gps_text_on(to, size);
    gps_text_plain(&text, from);
}
#define COPY(to, from) explained_copy_text(to, sizeof(to), from)

void gps_rule_counts_start(void) {
    const char *directory = secure_getenv("GPUSHARE_EXPLAIN");
    const struct gps_owner *self = gps_process_self();
    const struct gps_program *program = gps_process_program();
    char path[GPS_CONFIG_PATH];
    struct gps_text text = GPS_TEXT(path);
    if (!directory)
        return;
    gps_text_add(&text, "%s/%u.%lx", directory, self->pid, self->nonce);
    struct gps_explained *file = text.cut ? NULL : explained_map_file(path);
    if (!file)
        return;
    file->pid = self->pid;
    file->version = GPS_FORMAT_VERSION;
    COPY(file->program, program->name);
    COPY(file->executable, program->executable);
    COPY(file->arguments, program->arguments);
    memcpy(file->magic, GPS_EXPLAINED_MAGIC, sizeof(file->magic));
    state.file = file;
    gps_merged_sum_keep(&file->merged);
    gps_own_bytes_keep(file->private_bytes);
    gps_steady_keep(&file->untold);
    gps_frames_explain(file->frames);
    gps_rule_counts_active = true;
}

static uint32_t outcome_of_merged(uint64_t pointer) {
    struct gps_area area;
    const bool excluded = gps_merge_find(pointer, &area) && area.times >= GPS_EXCLUDED;
    return excluded ? GPS_EXPLAINED_EXCLUDED : GPS_EXPLAINED_MERGED;
}

static uint32_t outcome_of(uint64_t pointer, bool failed) {
    struct gps_alloc alloc;
    if (failed)
        return GPS_EXPLAINED_FAILED;
    if (!pointer || !gps_registry_find(pointer, &alloc))
        return GPS_EXPLAINED_PRIVATE;
    return alloc.kind == GPS_ALLOC_EXPORTED   ? GPS_EXPLAINED_EXPORTED
           : alloc.kind == GPS_ALLOC_IMPORTED ? GPS_EXPLAINED_IMPORTED
                                              : outcome_of_merged(pointer);
}

/* Rows are equal byte by byte but for their numbers. */
static struct gps_explained_row *explained_count_row(const struct gps_explained_row *row) {
    const size_t head = offsetof(struct gps_explained_row, size);
    for (unsigned i = 0; i < GPS_EXPLAINED_ROWS; i++) {
        struct gps_explained_row *at = &state.file->rows[i];
        if (at->count && memcmp((char *)at + head, (const char *)row + head, sizeof(*at) - head))
            continue;
        if (!at->count)
            *at = *row;
        for (unsigned pass = 0; pass < GPS_EXPLAINED_PASSED; pass++)
            at->passed[pass].last = row->passed[pass].last;
        at->count++;
        return at;
    }
    state.file->lost++;
    return NULL;
}

/* No row may be empty before others: the last one takes the place of this one. */
static void uncount(struct gps_explained_row *row) {
    unsigned rows = 0;
    if (--row->count)
        return;
    while (rows < GPS_EXPLAINED_ROWS &&
           (state.file->rows[rows].count || &state.file->rows[rows] == row))
        rows++;
    *row = state.file->rows[rows - 1];
    state.file->rows[rows - 1].count = 0;
}

static void explained_add(const struct gps_rule_request *request, uint32_t outcome) {
    struct gps_explained_row row;
    memset(&row, 0, sizeof(row));
    row.size = request->size;
    row.rule = request->rule ? request->rule->line : 0;
    row.outcome = outcome;
    row.device = (uint32_t)request->device;
    row.pool = request->pool;
    memcpy(row.passed, request->passed, sizeof(row.passed));
    memcpy(row.uuid, request->uuid, sizeof(row.uuid));
    struct gps_text call = GPS_TEXT(row.call);
    gps_format_api(&call, gps_call_name());
    char caller[GPS_GLOB_BYTES];
    gps_caller_name(caller, sizeof(caller));
    COPY(row.caller, caller);
    COPY(row.region, request->name);
    COPY(row.why, request->why->text);
    GPS_LOCKED(&state.lock);
    if (row.outcome == GPS_EXPLAINED_MERGED && !state.file->began)
        state.file->began = gps_clock_monotonic();
    struct gps_explained_row *counted = explained_count_row(&row);
    left_private = row.rule && (outcome == GPS_EXPLAINED_PRIVATE || outcome == GPS_EXPLAINED_MISFIT)
                       ? counted
                       : NULL;
}

void gps_rule_counts_answer(int code) {
    struct gps_explained_row *counted = left_private;
    left_private = NULL;
    if (!counted || code == GPS_OK)
        return;
    GPS_LOCKED(&state.lock);
    if (!counted->count)
        return; /* another thread's row has taken its place */
    struct gps_explained_row row = *counted;
    uncount(counted);
    row.count = 0;
    row.outcome = GPS_EXPLAINED_REFUSED;
    memset(row.why, 0, sizeof(row.why));
    struct gps_text text = GPS_TEXT(row.why);
    gps_text_add(&text, "failed with %lu", (uint64_t)code);
    explained_count_row(&row);
}

void gps_rule_counts_add(const struct gps_rule_request *request, uint64_t pointer, bool failed) {
    const uint32_t outcome = outcome_of(pointer, failed);
    const bool misfit = outcome == GPS_EXPLAINED_PRIVATE && request->why->names_key;
    explained_add(request, misfit ? GPS_EXPLAINED_MISFIT : outcome);
}

void gps_rule_counts_add_created(const struct gps_rule_request *request, bool taken) {
    explained_add(request, taken ? GPS_EXPLAINED_MERGED : GPS_EXPLAINED_PRIVATE);
}

void gps_rule_counts_end(enum gps_not_merging why) {
    if (!state.file)
        return;
    state.file->unmerged = why;
    state.file->ended = gps_clock_monotonic();
}
