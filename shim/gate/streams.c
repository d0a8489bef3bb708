/* streams.c - see streams.h. */
#include "streams.h"

#include <string.h>
#include <time.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "util/lock.h"

enum { MOST = 4096 };

struct stream {
    uint64_t context, stream; /* the stream's own context; 0: the default ones of the context */
    uint64_t event;           /* behind the work of one that was destroyed; else 0 */
};

static _Atomic unsigned captures; /* under way */

/* It begins with 1, because the slots begin with 0 and have noted nothing then. */
_Atomic uint64_t gps_streams_epoch = 1;

static struct {
    GPS_LOCK(GPS_RANK_STREAMS) lock;
    struct stream list[MOST];
    unsigned count;
    bool lost;              /* one could not be remembered */
    _Atomic uint64_t asked; /* the stream that is asked just now */
} state;

static unsigned find(const struct stream *wanted) {
    unsigned at = 0;
    while (at < state.count && memcmp(&state.list[at], wanted, sizeof(*wanted)) != 0)
        at++;
    return at;
}

/* An explicit stream may get work while another context is current. */
static struct stream describe(uint64_t stream) {
    struct stream one = {.stream = stream > GPS_DEFAULT_STREAMS ? stream : 0};
    if (!one.stream || gps_ops->stream_context(stream, &one.context) != GPS_OK)
        gps_ops->context(&one.context);
    return one;
}

/* Returns the context. */
static uint64_t add(uint64_t stream) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const struct stream one = describe(stream);
    gps_lock_take(&state.lock);
    if (one.context && find(&one) == state.count) { /* without one the driver refuses the work */
        state.lost |= state.count == MOST;
        if (!state.lost)
            state.list[state.count++] = one;
    }
    gps_lock_give(&state.lock);
    gps_scope_end(&scope);
    return one.context;
}

void gps_streams_add(uint64_t stream) {
    add(stream);
}

/* A signal handler may note another stream at any place here: then none counts as noted. */
void gps_streams_note_slowly(struct gps_gate_slot *slot, uint64_t stream) {
    const uint64_t epoch = gps_streams_epoch, context = add(stream);
    slot->epoch = 0;
    atomic_signal_fence(memory_order_seq_cst);
    slot->stream = stream;
    slot->context = context;
    atomic_signal_fence(memory_order_seq_cst);
    slot->epoch = slot->stream == stream && slot->context == context ? epoch : 0;
}

void gps_streams_remove_context(uint64_t context) {
    gps_lock_take(&state.lock);
    for (unsigned i = state.count; i-- > 0;)
        if (state.list[i].context == context)
            state.list[i] = state.list[--state.count];
    gps_lock_give(&state.lock);
    gps_streams_epoch++; /* the numbers of its streams can be others' now */
}

static bool is_noted(uint64_t stream) {
    bool noted = false;
    gps_lock_take(&state.lock);
    for (unsigned i = 0; !noted && i < state.count; i++)
        noted = state.list[i].stream == stream;
    gps_lock_give(&state.lock);
    return noted;
}

/* Makes an event behind the work of the stream, or 0 if it has none. False: the driver gave no
 * event. Beside a capture the stream is not asked, because that could end the capture. */
static bool mark_end(uint64_t stream, uint64_t *event) {
    const bool works = gps_streams_capturing() || gps_ops->stream_state(stream) != GPS_OK;
    *event = 0;
    return !works || gps_ops->event_mark(stream, event) == GPS_OK;
}

/* Puts the event in the stream's place in the list. False: the stream is not in the list any more.
 */
static bool put_event(uint64_t stream, uint64_t event, bool lost) {
    bool put = false;
    gps_lock_take(&state.lock);
    state.lost |= lost;
    for (unsigned i = state.count; i-- > 0;) {
        if (state.list[i].stream != stream)
            continue;
        state.list[i].stream = UINT64_MAX;
        state.list[i].event = put ? 0 : event;
        if (!state.list[i].event)
            state.list[i] = state.list[--state.count];
        put = true;
    }
    gps_lock_give(&state.lock);
    return put;
}

/* Waits until the driver has said whether this stream works. That takes microseconds, for it waits
 * for no work, and the stream must exist meanwhile. */
static void await_answer(uint64_t stream) {
    const struct timespec moment = {.tv_nsec = 20000};
    while (state.asked == stream)
        nanosleep(&moment, NULL);
}

void gps_streams_remove(uint64_t stream) {
    struct gps_scope scope;
    uint64_t event;
    if (stream <= GPS_DEFAULT_STREAMS)
        return;
    gps_scope_enter(&scope, 0);
    if (is_noted(stream)) {
        const bool marked = mark_end(stream, &event);
        if (!put_event(stream, event, !marked) && event)
            gps_ops->event_free(event); /* the context went meanwhile */
    }
    await_answer(stream);
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
    gps_lock_take(&state.lock);
    const bool known = !state.lost;
    gps_lock_give(&state.lock);
    return known;
}

/* --- idle --- */

/* A stream that is lost, or gone, does not work. */
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

/* Streams are asked from the end of the list on, one at a time. A stream that is removed meanwhile
 * leaves its place to the last one, which has been asked. */
static bool next_asked(unsigned *index, struct stream *one) {
    gps_lock_take(&state.lock);
    *index = *index < state.count ? *index : state.count;
    const bool any = *index > 0;
    if (any) {
        *one = state.list[--*index];
        state.asked = one->stream;
    }
    gps_lock_give(&state.lock);
    return any;
}

static bool any_is_busy(void) {
    struct stream one;
    bool busy = false;
    for (unsigned i = MOST; !busy && next_asked(&i, &one);)
        busy = is_busy(&one);
    state.asked = 0;
    return busy;
}

static bool next_ended(unsigned *index, uint64_t *event) {
    *event = 0;
    gps_lock_take(&state.lock);
    *index = *index < state.count ? *index : state.count;
    while (!*event && *index > 0)
        *event = state.list[--*index].event;
    if (*event)
        state.list[*index] = state.list[--state.count];
    gps_lock_give(&state.lock);
    return *event != 0;
}

static void forget_ended(void) {
    uint64_t event;
    for (unsigned i = MOST; next_ended(&i, &event);)
        gps_ops->event_free(event);
}

/* The gate is closed, so nobody adds a stream. One that is destroyed meanwhile leaves an event only
 * if it has not been asked yet. */
bool gps_streams_idle(void) {
    const bool idle = gps_streams_known() && !gps_streams_capturing() && !any_is_busy();
    if (idle)
        forget_ended();
    return idle;
}

void gps_streams_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    gps_streams_epoch = 1;
    captures = 0;
}
