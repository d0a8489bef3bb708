/* streams.c - see streams.h. */
#include "streams.h"

#include <pthread.h>
#include <string.h>

#include "process/driver_ops.h"
#include "process/scope.h"

enum { MOST = 4096, DEFAULTS = 2 /* 0, and the two with names */ };

struct stream {
    uint64_t context, stream; /* stream 0: the default ones of the context */
};

static _Atomic unsigned captures; /* under way */

/* From 1: the slots begin with 0, and have noted nothing. */
_Atomic uint64_t gps_streams_epoch = 1;

static struct {
    pthread_mutex_t lock;
    struct stream list[MOST];
    unsigned count;
    bool lost; /* one could not be remembered */
    bool left; /* one was destroyed that had work */
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
    if (find(&one) == state.count) {
        state.lost |= state.count == MOST;
        if (!state.lost)
            state.list[state.count++] = one;
    }
    pthread_mutex_unlock(&state.lock);
    gps_scope_end(&scope);
}

static void remove_all(uint64_t context, uint64_t stream) {
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.count; i-- > 0;)
        if (state.list[i].context == context || (stream && state.list[i].stream == stream))
            state.list[i] = state.list[--state.count];
    pthread_mutex_unlock(&state.lock);
    gps_streams_epoch++; /* its number can be another's now */
}

void gps_streams_remove(uint64_t stream) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (stream > DEFAULTS) {
        if (gps_ops->stream_state(stream) != GPS_OK)
            state.left = true;
        remove_all(UINT64_MAX, stream);
    }
    gps_scope_end(&scope);
}

void gps_streams_remove_context(uint64_t context) {
    remove_all(context, 0);
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

/* --- idle --- */

/* The default streams answer for the context that is current. */
static bool is_busy(const struct stream *one) {
    if (one->stream)
        return gps_ops->stream_state(one->stream) != GPS_OK;
    if (gps_ops->enter(one->context) != GPS_OK)
        return true;
    const bool busy = gps_ops->stream_state(0) != GPS_OK;
    gps_ops->leave();
    return busy;
}

static bool any_is_busy(void) {
    bool busy = false;
    for (unsigned i = 0; !busy && i < state.count; i++)
        busy = is_busy(&state.list[i]);
    return busy;
}

/* The lock is held across the driver's calls: the gate is closed, and nobody adds one. */
bool gps_streams_idle(void) {
    pthread_mutex_lock(&state.lock);
    const bool idle = !state.lost && !gps_streams_capturing() && !any_is_busy();
    const bool left = idle && state.left;
    pthread_mutex_unlock(&state.lock);
    if (left && gps_ops->synchronize() == GPS_OK)
        state.left = false;
    return idle;
}

void gps_streams_reset(void) {
    memset(&state, 0, sizeof(state));
    gps_streams_epoch = 1;
    captures = 0;
}
