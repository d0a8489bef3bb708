#include "streams.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/scope.h"
#include "threads/thread.h"
#include "util/lock.h"

enum { STREAMS = 65536, CAPTURES = 4096 };

#define NO_STREAM UINT64_MAX /* an event's entry in the list */

struct noted {
    struct gps_stream of;
    uint64_t used, waited; /* the epoch of its last work; work of epochs before this has ended */
};

struct capture {
    uint64_t context, stream;
    int thread;     /* of a default stream; else 0 */
    uint64_t begun; /* the epoch */
};

/* Begins with 1, because slots that have noted no stream begin with 0. */
_Atomic uint64_t gps_streams_epoch = 1;

static struct {
    GPS_LOCK(GPS_RANK_STREAMS) lock;
    unsigned count;    /* of the list */
    struct noted lost; /* work of which no stream could be remembered: there are too many */
    _Atomic unsigned capturing; /* captures under way */
    _Atomic uint64_t asked;     /* the stream that the driver is asked about now */
    _Atomic bool asking;        /* the driver is asked with the gate open */
} state;

/* The kernel gives them memory at first use: malloc must not be called here. */
static struct noted list[STREAMS];
static struct capture captures[CAPTURES];

/* --- streams that have work --- */

static unsigned stream_find(const struct gps_stream *wanted) {
    unsigned at = 0;
    while (at < state.count && memcmp(&list[at].of, wanted, sizeof(*wanted)) != 0)
        at++;
    return at;
}

/* With the lock. */
static void stream_note(const struct gps_stream *one) {
    struct noted *noted = &state.lost;
    unsigned at = stream_find(one);
    if (at == state.count && at < STREAMS)
        list[state.count++] = (struct noted){.used = 0};
    if (at < state.count)
        noted = &list[at];
    noted->of = *one;
    noted->used = gps_streams_epoch;
}

/* An explicit stream may get work while another context is current. */
static struct gps_stream stream_describe(uint64_t stream) {
    struct gps_stream one = {.stream = stream > GPS_DEFAULT_STREAMS ? stream : 0};
    if (!one.stream || gps_ops->stream_context(stream, &one.context) != GPS_OK)
        gps_ops->context(&one.context);
    return one;
}

uint64_t gps_streams_add(uint64_t stream) {
    GPS_SCOPE();
    const struct gps_stream one = stream_describe(stream);
    GPS_LOCKED(&state.lock);
    if (one.context)
        stream_note(&one);
    return one.context;
}

/* The fences order these stores against a signal handler of this thread that notes another stream
 * at any point here: then no stream counts as noted. */
static void note_in(struct gps_gate_slot *slot, uint64_t stream) {
    const uint64_t epoch = gps_streams_epoch, of = gps_streams_add(stream);
    const uint64_t context = stream > GPS_DEFAULT_STREAMS ? 0 : of;
    const bool other = slot->epoch != epoch;
    const unsigned change = ++slot->changes, place = change % GPS_GATE_NOTED;
    slot->epoch = 0;
    atomic_signal_fence(memory_order_seq_cst);
    for (unsigned i = 0; other && i < GPS_GATE_NOTED; i++)
        slot->noted[i].stream = NO_STREAM; /* streams noted in another epoch are forgotten */
    slot->noted[place] = (struct gps_gate_noted){stream, context};
    atomic_signal_fence(memory_order_seq_cst);
    slot->epoch = slot->changes == change ? epoch : 0;
}

void gps_streams_note(struct gps_gate_slot *slot, uint64_t stream) {
    uint64_t context = 0;
    const int code = stream > GPS_DEFAULT_STREAMS ? GPS_OK : gps_ops->context(&context);
    if (code != GPS_OK || !gps_streams_is_noted(slot, stream, context))
        note_in(slot, stream);
}

/* --- events behind work --- */

/* With the lock: one more than the place of the stream; 0: it has none. */
static unsigned stream_place_after(uint64_t stream) {
    unsigned at = state.count;
    while (at > 0 && list[at - 1].of.stream != stream)
        at--;
    return at;
}

/* With the lock. An event of a stream that is destroyed takes its place in one step, so that
 * gps_streams_look asks about one of the two. */
static void note_event(const struct gps_stream *event, uint64_t destroyed) {
    const unsigned at = destroyed ? stream_place_after(destroyed) : 0;
    if (at > 0)
        list[at - 1] = (struct noted){.of = *event, .used = gps_streams_epoch};
    else
        stream_note(event);
}

/* A stream that is lost, or gone, does not work. */
static enum gps_streams_answer answer_of(int code) {
    return code == GPS_NOT_READY || gps_code_is_of_capture(code) ? GPS_STREAMS_BUSY
                                                                 : GPS_STREAMS_IDLE;
}

/* Leaves an event in the list, if the stream works. One that captures has left its event before. */
static void leave_event(uint64_t stream, bool destroyed) {
    struct gps_stream one = stream_describe(stream);
    if ((state.capturing && gps_stream_is_capturing(stream)) ||
        answer_of(gps_ops->stream_state(stream)) == GPS_STREAMS_IDLE)
        return;
    const int code = gps_ops->event_mark(stream, &one.event);
    one.stream = NO_STREAM;
    GPS_LOCKED(&state.lock);
    if (code == GPS_OK)
        note_event(&one, destroyed ? stream : 0);
    else
        state.lost = (struct noted){.of = one, .used = gps_streams_epoch};
}

static bool is_noted(uint64_t stream) {
    GPS_LOCKED(&state.lock);
    return stream_place_after(stream) > 0;
}

static void leave_event_if_noted(uint64_t stream, bool destroyed) {
    if (stream > GPS_DEFAULT_STREAMS && is_noted(stream))
        leave_event(stream, destroyed);
}

/* --- captures --- */

static struct capture describe_capture(uint64_t stream) {
    const bool of_thread = stream <= GPS_DEFAULT_STREAMS;
    return (struct capture){.context = stream_describe(stream).context,
                            .stream = stream,
                            .thread = of_thread ? (int)syscall(SYS_gettid) : 0,
                            .begun = gps_streams_epoch};
}

/* With the lock. */
static void remove_capture(unsigned at) {
    const unsigned last = state.capturing - 1;
    captures[at] = captures[last];
    state.capturing = last;
}

void gps_streams_capture_begins(uint64_t stream) {
    GPS_DRIVER_SCOPE();
    const struct capture one = describe_capture(stream);
    leave_event_if_noted(stream, false);
    gps_lock_take(&state.lock);
    if (state.capturing < CAPTURES)
        captures[state.capturing++] = one;
    else
        state.lost = (struct noted){.of.context = one.context, .used = gps_streams_epoch};
    gps_lock_give(&state.lock);
    while (state.asking)
        usleep(20);
}

void gps_streams_capture_ends(uint64_t stream) {
    GPS_SCOPE();
    const struct capture one = describe_capture(stream);
    bool found = false;
    GPS_LOCKED(&state.lock);
    for (unsigned i = state.capturing; !found && i-- > 0;)
        if ((found = captures[i].stream == stream && captures[i].thread == one.thread))
            remove_capture(i);
}

/* Captures of a thread's default stream end with the thread. */
static void remove_dead_captures(void) {
    GPS_LOCKED(&state.lock);
    for (unsigned i = state.capturing; i-- > 0;)
        if (captures[i].thread && gps_thread_is_dead(captures[i].thread))
            remove_capture(i);
}

bool gps_streams_any_capturing(void) {
    if (!state.capturing)
        return false;
    GPS_SCOPE();
    remove_dead_captures();
    return state.capturing != 0;
}

void gps_streams_may_join(uint64_t stream) {
    if (!state.capturing)
        return;
    GPS_DRIVER_SCOPE();
    leave_event_if_noted(stream, false);
}

/* --- the end of a stream --- */

/* With the lock. */
static void stream_forget(uint64_t stream) {
    for (unsigned i = state.count; i-- > 0;)
        if (list[i].of.stream == stream)
            list[i] = list[--state.count];
    for (unsigned i = state.capturing; i-- > 0;)
        if (captures[i].stream == stream)
            remove_capture(i);
}

/* The same for all streams of a context. */
static void forget_all(uint64_t context, uint64_t before) {
    for (unsigned i = state.count; i-- > 0;)
        if (list[i].of.context == context && list[i].used < before)
            list[i] = list[--state.count];
    for (unsigned i = state.capturing; i-- > 0;)
        if (captures[i].context == context && captures[i].begun < before)
            remove_capture(i);
    if (state.lost.of.context == context && state.lost.used < before)
        state.lost.used = 0;
}

void gps_streams_remove_context(uint64_t context, uint64_t before) {
    gps_lock_take(&state.lock);
    forget_all(context, before);
    gps_lock_give(&state.lock);
    gps_streams_epoch++; /* other streams may get the numbers of its streams */
}

/* Waits until the driver has said whether this stream works, for which the stream must exist. The
 * query takes microseconds: it waits for no work. */
static void await_answer(uint64_t stream) {
    while (state.asked == stream)
        usleep(20);
}

void gps_streams_remove(uint64_t stream) {
    if (stream <= GPS_DEFAULT_STREAMS)
        return;
    GPS_DRIVER_SCOPE();
    leave_event_if_noted(stream, true);
    gps_lock_take(&state.lock);
    stream_forget(stream);
    gps_lock_give(&state.lock);
    await_answer(stream);
    gps_streams_epoch++;
}

/* --- idle --- */

static bool noted_is_over(const struct noted *one) {
    return one->used < one->waited;
}

static void stream_end_event(const struct gps_stream *of) {
    gps_lock_take(&state.lock);
    const unsigned at = stream_find(of);
    const bool found = at < state.count; /* else its context has ended meanwhile */
    if (found)
        list[at] = list[--state.count];
    gps_lock_give(&state.lock);
    if (found)
        gps_ops->event_free(of->event);
}

static enum gps_streams_answer ask_event(const struct gps_stream *of) {
    const enum gps_streams_answer answer = answer_of(gps_ops->event_state(of->event));
    if (answer == GPS_STREAMS_IDLE)
        stream_end_event(of);
    return answer;
}

/* The default streams answer for the context that is current. A capture of a stream that waits for
 * the legacy one forbids to ask that one, and the driver says so. */
static enum gps_streams_answer ask_default(const struct noted *one) {
    bool captured;
    enum gps_streams_answer answer;
    if (gps_ops->enter(one->of.context) != GPS_OK)
        return GPS_STREAMS_IDLE;
    if (state.capturing && gps_code_is_of_capture(gps_ops->capturing(0, &captured)))
        answer = noted_is_over(one) ? GPS_STREAMS_IDLE : GPS_STREAMS_UNKNOWN;
    else
        answer = answer_of(gps_ops->stream_state(0));
    gps_ops->leave();
    return answer;
}

static enum gps_streams_answer noted_ask_driver(const struct noted *one) {
    if (one->of.event)
        return ask_event(&one->of);
    if (!one->of.stream)
        return ask_default(one);
    if (state.capturing && gps_stream_is_capturing(one->of.stream))
        return GPS_STREAMS_IDLE; /* an event is behind its work */
    return answer_of(gps_ops->stream_state(one->of.stream));
}

/* With the lock: the next entry of a context, or of any (0), from the end on. */
static bool next_of(uint64_t context, unsigned *index, struct noted *one) {
    bool found = false;
    *index = *index < state.count ? *index : state.count;
    while (!found && *index > 0) {
        *one = list[--*index];
        found = !context || one->of.context == context;
    }
    return found;
}

/* Streams are asked from the end of the list on, one at a time. A stream that is removed meanwhile
 * leaves its place to the last one, which has been asked. */
static bool stream_next_noted(uint64_t context, unsigned *index, struct noted *one) {
    GPS_LOCKED(&state.lock);
    const bool any = next_of(context, index, one);
    if (any)
        state.asked = one->of.stream;
    return any;
}

bool gps_streams_lost(struct gps_stream *lost) {
    GPS_LOCKED(&state.lock);
    const bool any = state.lost.used && !noted_is_over(&state.lost);
    *lost = state.lost.of;
    return any;
}

/* A stream that is destroyed meanwhile leaves an event only if it is busy, so it has not been asked
 * yet; the event takes its place, which comes later. */
enum gps_streams_answer gps_streams_look(uint64_t context, struct gps_stream *first) {
    enum gps_streams_answer answer = GPS_STREAMS_IDLE;
    struct noted one;
    if (gps_streams_lost(first) && (!context || first->context == context))
        return GPS_STREAMS_UNKNOWN;
    for (unsigned i = UINT32_MAX;
         answer == GPS_STREAMS_IDLE && stream_next_noted(context, &i, &one);)
        answer = noted_ask_driver(&one);
    state.asked = 0;
    if (answer != GPS_STREAMS_IDLE)
        *first = one.of;
    return answer;
}

void gps_streams_end_events(void) {
    struct noted one;
    for (unsigned i = UINT32_MAX; !state.capturing && stream_next_noted(0, &i, &one);)
        if (one.of.event)
            ask_event(&one.of);
    state.asked = 0;
}

static bool stream_find_noted(const struct gps_stream *of, struct noted *one) {
    GPS_LOCKED(&state.lock);
    const unsigned at = stream_find(of);
    const bool found = at < state.count;
    if (found) {
        *one = list[at];
        state.asked = of->stream;
    }
    return found;
}

static enum gps_streams_answer ask_noted(const struct gps_stream *of) {
    struct noted one;
    const enum gps_streams_answer answer =
        stream_find_noted(of, &one) ? noted_ask_driver(&one) : GPS_STREAMS_IDLE;
    state.asked = 0;
    return answer;
}

/* gps_streams_capture_begins waits until `asking` is false. */
bool gps_streams_is_busy(const struct gps_stream *of) {
    state.asking = true;
    const bool busy = !state.capturing && ask_noted(of) == GPS_STREAMS_BUSY;
    state.asking = false;
    return busy;
}

/* A stream that is not noted has had no work. */
static bool find_held(const struct gps_gate_stream *held, struct gps_stream *found) {
    GPS_LOCKED(&state.lock);
    for (unsigned i = 0; i < state.count; i++) {
        *found = list[i].of;
        if (!found->event && found->stream == held->stream &&
            (held->stream || found->context == held->context))
            return true;
    }
    return false;
}

bool gps_streams_is_stalled_busy(const struct gps_gate_stream *held) {
    struct gps_stream one;
    return find_held(held, &one) && gps_streams_is_busy(&one);
}

enum gps_streams_answer gps_streams_look_at(uint64_t context, bool closed) {
    struct gps_stream first;
    state.asking = !closed;
    const bool may = closed || !state.capturing;
    const enum gps_streams_answer answer =
        may ? gps_streams_look(context, &first) : GPS_STREAMS_BUSY;
    state.asking = false;
    return answer;
}

bool gps_streams_knows(uint64_t context) {
    struct noted one;
    unsigned i = UINT32_MAX;
    GPS_LOCKED(&state.lock);
    return (state.lost.used && state.lost.of.context == context) || next_of(context, &i, &one);
}

uint64_t gps_streams_mark(void) {
    return ++gps_streams_epoch;
}

void gps_streams_waited(uint64_t context, uint64_t mark) {
    GPS_LOCKED(&state.lock);
    for (unsigned i = 0; i < state.count; i++)
        if (list[i].of.context == context)
            list[i].waited = mark;
    if (state.lost.of.context == context)
        state.lost.waited = mark;
}

void gps_streams_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    gps_streams_epoch = 1;
}
