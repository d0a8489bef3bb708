/* allocation_log.c - see allocation_log.h. */
#include "allocation_log.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "log/log.h"
#include "process/caller.h"
#include "process/driver_ops.h"
#include "process/scope.h"
#include "reporter.h"
#include "stack/call.h"
#include "stack/trace.h"
#include "util/clock.h"

enum { SEEN = 1024 }; /* a power of two */

bool gps_allocation_log_active;

static struct {
    uint64_t process;
    _Atomic uint64_t count;
    _Atomic uint64_t seen[SEEN]; /* hashes of stacks that are in the log; a newer one replaces */
} state;

void gps_allocation_log_start(const struct gps_options *options) {
    memset((void *)&state, 0, sizeof(state));
    state.process = gps_clock_monotonic();
    gps_allocation_log_active = options->list_allocations == GPS_LIST_YES &&
                                options->mode == GPS_MODE_AUDIT &&
                                options->log_format == GPS_LOG_JSONL;
}

static bool is_new(uint64_t hash) {
    return hash && atomic_exchange(&state.seen[hash % SEEN], hash) != hash;
}

/* The frames only with the first line of a stack; they are more than a stack of the program's
 * should have to bear. */
static void write_line(struct gps_listed_line *line, uint32_t trace) {
    const size_t size = GPS_STACK_MAX * sizeof(struct gps_frame);
    line->site = gps_trace_hash(trace);
    void *frames = is_new(line->site) ? mmap(NULL, size, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                      : MAP_FAILED;
    if (frames != MAP_FAILED) {
        line->stack = frames;
        line->stack_count = gps_trace_frames(trace, frames, GPS_STACK_MAX);
    }
    gps_log_allocation(line);
    if (frames != MAP_FAILED)
        munmap(frames, size);
}

void gps_allocation_log_add(uint64_t pointer, uint64_t size, enum gps_listed kind) {
    struct gps_scope scope;
    char caller[GPS_GLOB_BYTES];
    struct gps_listed_line line = {.process = state.process,
                                   .api = gps_call_name(),
                                   .pointer = pointer,
                                   .size = size,
                                   .device = -1,
                                   .caller = caller,
                                   .kind = kind == GPS_LISTED_POOL ? "pool" : "plain"};
    gps_scope_begin(&scope);
    line.number = atomic_fetch_add(&state.count, 1) + 1;
    gps_ops->context(&line.context);
    gps_ops->device(&line.device);
    gps_caller_name(caller, sizeof(caller));
    write_line(&line, gps_trace_kept());
    gps_scope_end(&scope);
}
