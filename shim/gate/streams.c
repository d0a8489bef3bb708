/* streams.c - see streams.h. */
#include "streams.h"

#include <pthread.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"

enum { MOST = 4096, DEFAULTS = 2 /* 0, and the two with names */ };

struct stream {
    uint64_t context, stream; /* stream 0: the default ones of the context */
    uint64_t event;           /* behind the work of one that was destroyed; else 0 */
};

static _Atomic unsigned captures; /* under way */

/* From 1: the slots begin with 0, and have noted nothing. */
_Atomic uint64_t gps_streams_epoch = 1;

static struct {
    pthread_mutex_t lock;
    struct stream list[MOST];
    unsigned count;
    bool lost; /* one could not be remembered */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned find(const struct stream *wanted) {
    unsigned at = 0;
    while (at < state.count && memcmp(&state.list[at], wanted, sizeof(*wanted)) != 0)
        at++;
    return at;
}

void gps_streams_add(uint64_t stream) {
    struct stream one = {.stream = stream > DEFAULTS ? stream : 0};
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_ops->context(&one.context);
    pthread_mutex_lock(&state.lock);
    if (one.context && find(&one) == state.count) { /* without one the driver refuses the work */
        state.lost |= state.count == MOST;
        if (!state.lost)
            state.list[state.count++] = one;
    }
    pthread_mutex_unlock(&state.lock);
    gps_scope_end(&scope);
}

void gps_streams_remove_context(uint64_t context) {
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.count; i-- > 0;)
        if (state.list[i].context == context)
            state.list[i] = state.list[--state.count];
    pthread_mutex_unlock(&state.lock);
    gps_streams_epoch++; /* the numbers of its streams can be others' now */
}

/* A capture can be ended by the question whether the stream works. */
static void end_stream(struct stream *one) {
    const bool works = gps_streams_capturing() || gps_ops->stream_state(one->stream) != GPS_OK;
    if (works)
        state.lost |= gps_ops->event_mark(one->stream, &one->event) != GPS_OK;
    one->stream = UINT64_MAX;
    if (!one->event)
        *one = state.list[--state.count];
}

void gps_streams_remove(uint64_t stream) {
    struct gps_scope scope;
    if (stream <= DEFAULTS)
        return;
    gps_scope_enter(&scope, 0);
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.count; i-- > 0;)
        if (state.list[i].stream == stream)
            end_stream(&state.list[i]);
    pthread_mutex_unlock(&state.lock);
    gps_streams_epoch++;
    gps_scope_end(&scope);
}

void gps_streams_capture_begins(void) {
    atomic_fetch_add(&captures, 1);
}

void gps_streams_capture_ends(void) {
    unsigned now = atomic_load(&captures);
    while (now && !atomic_compare_exchange_weak(&captures, &now, now - 1)) {
    }
}

bool gps_streams_capturing(void) {
    return atomic_load(&captures) != 0;
}

bool gps_streams_known(void) {
    pthread_mutex_lock(&state.lock);
    const bool known = !state.lost;
    pthread_mutex_unlock(&state.lock);
    return known;
}

/* --- idle --- */

/* What is lost, or gone, does not work. */
static bool says_busy(int code) {
    return code == GPS_NOT_READY || gps_is_of_capture(code);
}

/* The default streams answer for the context that is current. */
static bool is_busy(const struct stream *one) {
    if (one->event)
        return says_busy(gps_ops->event_state(one->event));
    if (one->stream)
        return says_busy(gps_ops->stream_state(one->stream));
    if (gps_ops->enter(one->context) != GPS_OK)
        return false;
    const bool busy = says_busy(gps_ops->stream_state(0));
    gps_ops->leave();
    return busy;
}

static bool any_is_busy(void) {
    bool busy = false;
    for (unsigned i = 0; !busy && i < state.count; i++)
        busy = is_busy(&state.list[i]);
    return busy;
}

static void forget_ended(void) {
    for (unsigned i = state.count; i-- > 0;) {
        if (!state.list[i].event)
            continue;
        gps_ops->event_free(state.list[i].event);
        state.list[i] = state.list[--state.count];
    }
}

/* The lock is held across the driver's calls: the gate is closed, and nobody adds one. */
bool gps_streams_idle(void) {
    pthread_mutex_lock(&state.lock);
    const bool idle = !state.lost && !gps_streams_capturing() && !any_is_busy();
    if (idle)
        forget_ended();
    pthread_mutex_unlock(&state.lock);
    return idle;
}

void gps_streams_reset(void) {
    memset(&state, 0, sizeof(state));
    gps_streams_epoch = 1;
    captures = 0;
}
