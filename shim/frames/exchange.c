/* exchange.c - the buffers with frames of this process, their touches and waits; see exchange.h. */
#include "exchange.h"

#include <string.h>

#include "buffer.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/hash_table.h"
#include "registry/sharing.h"
#include "util/clock.h"
#include "util/forgotten.h"

#define DRAIN_MOST   20000000u /* ns */
#define LEGACY       1u        /* the default stream of all threads */
#define PER_THREAD   2u        /* the default stream that each thread has for itself */
#define AT_ONCE_MOST 4u        /* buffers of one call */

bool gps_frames_active;
GPS_FORGOTTEN(gps_frames_active);
_Atomic uint64_t gps_frames_from, gps_frames_to;
GPS_FORGOTTEN(gps_frames_from);
GPS_FORGOTTEN(gps_frames_to);
_Atomic bool gps_frames_any, gps_frames_in_graphs;
GPS_FORGOTTEN(gps_frames_any);
GPS_FORGOTTEN(gps_frames_in_graphs);

static struct {
    struct gps_buffer *first;
    uint64_t changes;                       /* how often the list has changed */
    struct gps_explained_frames *explained; /* NULL: not for `explain` */
    unsigned explained_count;
} state;
GPS_FORGOTTEN(state);

/* The buffers that this thread's call uses. */
static __thread struct {
    uint64_t stream;
    unsigned count;
    struct gps_buffer *buffers[AT_ONCE_MOST];
} call;

/* --- the buffers --- */

/* A walk over the list, with the lock. If the list changes while the lock is given back, the walk
 * ends, and the next call goes on. */
struct visit {
    struct gps_buffer *at;
    uint64_t changes;
};
static struct visit visit_first(void) {
    return (struct visit){state.first, state.changes};
}

static bool visit_is_there(const struct visit *visit) {
    return visit->at && visit->changes == state.changes;
}

static void widen(const struct gps_buffer *buffer) {
    if (!gps_frames_to || buffer->base < gps_frames_from)
        gps_frames_from = buffer->base;
    if (buffer->base + buffer->size > gps_frames_to)
        gps_frames_to = buffer->base + buffer->size;
}

static void buffer_list_add(struct gps_buffer *buffer) {
    GPS_BUFFERS_LOCKED();
    buffer->next = state.first;
    state.first = buffer;
    state.changes++;
    widen(buffer);
    gps_write_hear_all();
    gps_sharing_note(GPS_SHARING_FRAMES);
}

static struct gps_buffer *buffer_make(const struct gps_region_record *record, uint64_t context) {
    struct gps_buffer *buffer = gps_table_allocate(sizeof(*buffer));
    struct gps_frames_said said;
    if (!buffer)
        return NULL;
    memset(buffer, 0, sizeof(*buffer));
    buffer->context = context;
    buffer->stride = gps_frames_stride(record->requested);
    memcpy(buffer->name, record->name, sizeof(buffer->name));
    if (gps_frame_file_open(gps_membership_store(), &record->id, &buffer->file, &said) == 0 &&
        said.head.slots == record->frame_slots &&
        buffer->stride * (said.head.slots + UINT64_C(1)) <= record->extent) {
        buffer->head = said.head;
        buffer->any = said.head.any;
        gps_frames_any |= buffer->any;
        if (gps_buffer_equip(buffer))
            return buffer;
        gps_frame_file_close(&buffer->file);
    }
    gps_table_free(buffer, sizeof(*buffer));
    return NULL;
}

void gps_frames_explain(struct gps_explained_frames all[GPS_EXPLAINED_FRAMES]) {
    state.explained = all;
}

/* A place for the buffer's figures; NULL: `explain` does not watch, or none is left. */
static struct gps_explained_frames *explained_of(const struct gps_buffer *buffer) {
    GPS_BUFFERS_LOCKED();
    if (!state.explained || state.explained_count == GPS_EXPLAINED_FRAMES)
        return NULL;
    struct gps_explained_frames *const place = &state.explained[state.explained_count++];
    memcpy(place->name, buffer->name, sizeof(place->name));
    return place;
}

bool gps_frames_export(const struct gps_region_record *record, const struct gps_rule *rule,
                       uint64_t pointer, uint64_t context) {
    struct gps_buffer *buffer = buffer_make(record, context);
    if (!buffer) {
        gps_frame_file_remove(gps_membership_store(), &record->id);
        return false;
    }
    buffer->writes = true;
    buffer->base = pointer;
    buffer->size = record->requested;
    buffer->slots = pointer + buffer->stride;
    buffer->turn.fixed = rule->frame_waits;
    buffer->explained = explained_of(buffer);
    buffer_list_add(buffer);
    return true;
}

static void buffer_drop(struct gps_buffer *buffer) {
    gps_frame_file_close(&buffer->file);
    gps_table_free(buffer, sizeof(*buffer));
}

static const char *buffer_join(struct gps_buffer *buffer) {
    int status = -EAGAIN;
    buffer->reader.owner = *gps_process_self();
    for (unsigned i = 0; status == -EAGAIN && i < 10000; i++) {
        status = gps_frame_file_join(gps_membership_store(), &buffer->file, &buffer->reader,
                                     &buffer->place);
        if (status == -EAGAIN)
            gps_program_signals_poll(NULL, GPS_BUFFER_NAP);
    }
    return status == 0         ? NULL
           : status == -EUSERS ? "32 programs read its frames already"
           : status == -ENOENT ? "the exporter cannot publish its frames"
                               : "the file of its frames cannot be written";
}

const char *gps_frames_import(const struct gps_region_record *record, uint64_t mapping,
                              uint64_t size, uint64_t context, uint64_t *pointer) {
    struct gps_buffer *buffer = buffer_make(record, context);
    if (!buffer)
        return "the file of its frames cannot be read, or the driver has no stream left";
    buffer->mapping = mapping;
    buffer->slots = mapping + buffer->stride;
    buffer->size = size;
    const char *why = buffer_join(buffer);
    if (!why && gps_ops->allocate(size, &buffer->base) != GPS_OK)
        why = "there is no memory for a buffer of its own";
    if (why) {
        buffer_drop(buffer);
        return why;
    }
    gps_ops->zero(buffer->base, size);
    buffer->touched[buffer->touched_count++].stream = LEGACY; /* the fill may be under way */
    *pointer = buffer->base;
    buffer_list_add(buffer);
    return NULL;
}

static struct gps_buffer *buffer_find(uint64_t pointer) {
    struct gps_buffer *found = state.first;
    while (found && found->base != pointer)
        found = found->next;
    return found;
}

static bool buffer_is_listed(const struct gps_buffer *buffer) {
    const struct gps_buffer *each = state.first;
    while (each && each != buffer)
        each = each->next;
    return each != NULL;
}

/* With the lock. False: another thread has taken the buffer out. */
static bool take_out(struct gps_buffer *buffer) {
    struct gps_buffer **link = &state.first;
    while (*link && *link != buffer)
        link = &(*link)->next;
    if (!*link)
        return false;
    *link = buffer->next;
    buffer->gone = true;
    state.changes++;
    return true;
}

static void say_ended(struct gps_buffer *buffer) {
    static const struct gps_frames_reader nobody;
    gps_buffer_count_last(buffer);
    gps_buffer_file_lock();
    buffer->writer.ended = 1;
    buffer->reader = nobody;
    if (buffer->writes)
        gps_frame_file_put_writer(&buffer->file, &buffer->writer);
    else
        gps_frame_file_put_reader(&buffer->file, buffer->place, &buffer->reader);
    gps_buffer_file_unlock();
}

/* With the lock, in its context. */
static void publish_last(struct gps_buffer *buffer, struct gps_scope *scope) {
    if (buffer->writes && !buffer->inside && gps_turn_is_whole(&buffer->turn)) {
        gps_buffer_publish(buffer, scope);
        buffer->turn.ended = true;
    }
}

/* With the lock. A buffer that another thread's call, or an endless copy, still uses stays. */
static void give_back(struct gps_buffer *buffer) {
    say_ended(buffer);
    if (!buffer->under_way && !buffer->inside && !buffer->pinned)
        buffer_drop(buffer);
}

/* With the lock, in its context. A handler that leaves the wait by longjmp leaves the buffer as it
 * was: the program frees it once more. */
static void buffer_finish(struct gps_buffer *buffer, struct gps_scope *scope) {
    publish_last(buffer, scope);
    while (!buffer->gone && gps_ops->stream_state(buffer->stream) == GPS_NOT_READY)
        gps_buffer_nap(buffer, scope);
    if (buffer->gone)
        return;
    gps_ops->stream_end(buffer->stream);
    gps_ops->event_free(buffer->mark);
    gps_ops->event_free(buffer->copied);
}

uint64_t gps_frames_freed(uint64_t pointer) {
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    struct gps_scope inner;
    struct gps_buffer *const buffer = buffer_find(pointer);
    if (!buffer)
        return 0;
    const uint64_t mapping = buffer->mapping;
    if (gps_scope_enter(&inner, buffer->context) == GPS_OK)
        buffer_finish(buffer, &inner);
    gps_scope_end(&inner);
    if (!take_out(buffer))
        return 0;
    give_back(buffer);
    return mapping;
}

/* With the lock. Whether a copy of ours is under way; in a context that is lost none is. */
static bool buffer_leave(struct gps_buffer *buffer) {
    struct gps_scope scope;
    int state_now = GPS_NOT_INITIALIZED;
    if (gps_scope_enter(&scope, buffer->context) == GPS_OK) {
        publish_last(buffer, &scope);
        state_now = gps_ops->stream_state(buffer->stream);
    }
    gps_scope_end(&scope);
    gps_buffer_count_last(buffer);
    return buffer->under_way && (state_now == GPS_OK || state_now == GPS_NOT_READY);
}

static bool leave_all(uint64_t context) {
    GPS_BUFFERS_LOCKED();
    bool busy = false;
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        if (!context || each.at->context == context)
            busy |= buffer_leave(each.at);
    return busy;
}

/* Waits for copies that are under way, for a second at most, in case the device hangs. */
void gps_frames_leave(uint64_t context) {
    GPS_SCOPE();
    const uint64_t until = gps_clock_monotonic() + GPS_SECOND;
    while (leave_all(context) && gps_clock_monotonic() < until)
        gps_program_signals_poll(NULL, GPS_BUFFER_NAP);
}

void gps_frames_purge(uint64_t context) {
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct gps_buffer *each = state.first, *next; each; each = next) {
        next = each->next;
        if (each->context == context && take_out(each))
            give_back(each);
    }
}

/* --- touches --- */

/* Kind and place of a touch in one word, which is not 0. */
static uint64_t touch_key(uint64_t how, uint64_t where) {
    const uint64_t key = (how ^ where * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return key ? key : 1;
}

/* Orders the stream's next work after our last copy. */
static void buffer_order_stream(struct gps_buffer *buffer, uint64_t stream) {
    const int thread = stream == PER_THREAD ? gps_buffer_thread() : 0;
    for (unsigned i = 0; i < buffer->touched_count; i++)
        if (buffer->touched[i].stream == stream && buffer->touched[i].thread == thread)
            return;
    if (buffer->pending && gps_ops->event_state(buffer->copied) == GPS_OK)
        buffer->pending = false;
    if (buffer->pending)
        gps_ops->stream_follow(stream, buffer->copied);
    buffer->crowded |= buffer->touched_count == GPS_TOUCHED_MAX;
    if (buffer->crowded)
        return;
    buffer->touched[buffer->touched_count].stream = stream;
    buffer->touched[buffer->touched_count++].thread = thread;
}

/* Other threads' calls under way belong to the frame, and their next calls to the frame after. */
static void buffer_publish_frame(struct gps_buffer *buffer, struct gps_scope *scope) {
    const uint64_t until = gps_clock_monotonic() + DRAIN_MOST;
    buffer->held = until + buffer->head.timeout;
    buffer->holder = gps_buffer_thread();
    while (buffer->inside && gps_clock_monotonic() < until)
        if (!gps_buffer_nap(buffer, scope))
            return;
    if (buffer->inside)
        gps_buffer_leave_out(buffer);
    else
        gps_buffer_publish(buffer, scope);
    buffer->held = 0;
}

/* Whether another thread holds the buffer. The holder may touch it: in a signal handler, or after
 * one that left by longjmp. */
static bool buffer_is_held(const struct gps_buffer *buffer) {
    return buffer->held && buffer->holder != gps_buffer_thread() &&
           gps_clock_monotonic() < buffer->held;
}

static bool is_in_call(const struct gps_buffer *buffer) {
    for (unsigned i = 0; i < call.count; i++)
        if (call.buffers[i] == buffer)
            return true;
    return call.count == AT_ONCE_MOST;
}

/* The touch, before the driver's call. */
static void buffer_touch(struct gps_buffer *buffer, struct gps_scope *scope, uint64_t key) {
    while (buffer_is_held(buffer) && gps_buffer_nap(buffer, scope))
        continue;
    if (buffer->gone)
        return;
    if (!buffer->writes && gps_turn_look(&buffer->turn, key))
        gps_buffer_refresh(buffer, scope);
    else if (buffer->writes && gps_turn_touch(&buffer->turn, key, gps_buffer_thread()))
        buffer_publish_frame(buffer, scope);
}

/* With the lock. Inside a capture nothing happens yet: the graph's launch is the touch. A signal
 * handler that runs meanwhile may make calls of its own. */
static void touch(struct gps_buffer *buffer, uint64_t key) {
    const uint64_t stream = call.stream;
    struct gps_scope scope;
    if (is_in_call(buffer))
        return;
    gps_scope_enter(&scope, buffer->context);
    const bool captured = gps_stream_may_be_capturing(stream);
    if (captured)
        gps_frames_in_graphs = buffer->in_graph = true;
    else
        buffer_touch(buffer, &scope, key);
    if (!captured && !buffer->gone) {
        buffer_order_stream(buffer, stream);
        buffer->inside++;
        call.stream = stream;
        call.buffers[call.count++] = buffer;
    }
    gps_scope_end(&scope);
}

/* A signal handler may have left the previous call by longjmp. */
void gps_frames_begin(uint64_t stream) {
    if (call.count)
        gps_frames_end(false);
    call.stream = stream;
}

static bool buffer_has_address(const struct gps_buffer *buffer, uint64_t address, uint64_t size) {
    return address < buffer->base + buffer->size && address + (size ? size : 1) > buffer->base;
}

void gps_frames_add(uint64_t address, uint64_t size, uint64_t how) {
    if (!gps_frames_near(address, size ? size : 1))
        return;
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        if (buffer_has_address(each.at, address, size))
            touch(each.at, touch_key(how, address - each.at->base));
}

void gps_frames_note(uint64_t address, uint64_t size) {
    if (!gps_frames_near(address, size ? size : 1))
        return;
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        if (buffer_has_address(each.at, address, size))
            gps_frames_in_graphs = each.at->in_graph = true;
}

void gps_frames_add_any_slowly(uint64_t how, bool graph) {
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        if (each.at->any || (graph && each.at->in_graph))
            touch(each.at, touch_key(how, 0));
}

/* --- waits --- */

static bool buffer_is_idle(const struct gps_buffer *buffer) {
    for (unsigned i = 0; i < buffer->touched_count; i++)
        if (!gps_buffer_can_name(buffer, i) ||
            gps_ops->stream_state(buffer->touched[i].stream) != GPS_OK)
            return false;
    return !buffer->crowded && (!buffer->left || gps_ops->event_state(buffer->mark) == GPS_OK);
}

/* With the lock. `ended`: the call's work on it has surely ended. */
static void buffer_wait_for(struct gps_buffer *buffer, bool ended) {
    struct gps_scope scope;
    if (!buffer->turn.touched)
        return;
    if (!buffer->writes) {
        gps_turn_looked(&buffer->turn);
        return;
    }
    gps_scope_enter(&scope, buffer->context);
    if ((ended || buffer_is_idle(buffer)) && gps_turn_wait(&buffer->turn))
        buffer_publish_frame(buffer, &scope);
    gps_scope_end(&scope);
}

/* The call ends before the wait: a signal handler may leave that by longjmp, or free a buffer. */
static void end_call(bool waited) {
    struct gps_buffer *buffers[AT_ONCE_MOST];
    const unsigned count = call.count;
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    call.count = 0;
    for (unsigned i = 0; i < count; i++) {
        buffers[i] = call.buffers[i];
        buffers[i]->inside--;
    }
    for (unsigned i = 0; waited && i < count; i++)
        if (buffer_is_listed(buffers[i]))
            buffer_wait_for(buffers[i], true);
}

/* A copy of other memory waits, too: for its stream, and for the work that the stream follows. */
void gps_frames_end(bool waited) {
    if (call.count)
        end_call(waited);
    if (waited)
        gps_frames_waited();
}

void gps_frames_waited(void) {
    if (!gps_frames_exist())
        return;
    if (call.count)
        end_call(false); /* a call that a handler has left */
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        buffer_wait_for(each.at, false);
}

/* With the lock, in its context. */
static void leave_one(struct gps_buffer *buffer, uint64_t stream) {
    if (buffer->left)
        gps_ops->stream_follow(stream, buffer->mark);
    if (gps_buffer_follow_stream(buffer, stream))
        buffer->left = true;
    else
        buffer->crowded = true;
}

/* With the lock. The stream's work goes on after its end. */
static void leave_stream(struct gps_buffer *buffer, uint64_t stream) {
    struct gps_scope scope;
    unsigned kept = 0;
    gps_scope_enter(&scope, buffer->context);
    for (unsigned i = 0; i < buffer->touched_count; i++)
        if (buffer->touched[i].stream != stream)
            buffer->touched[kept++] = buffer->touched[i];
        else
            leave_one(buffer, stream);
    buffer->touched_count = kept;
    gps_scope_end(&scope);
}

void gps_frames_stream_ends(uint64_t stream) {
    if (!gps_frames_exist())
        return;
    GPS_SCOPE();
    GPS_BUFFERS_LOCKED();
    for (struct visit each = visit_first(); visit_is_there(&each); each.at = each.at->next)
        leave_stream(each.at, stream);
}

/* --- copies and fills --- */

/* A node of a graph, or a word that a stream writes or waits for. */
static void note_node(const struct gps_write *one) {
    if (one->size)
        gps_frames_note(one->to, one->size);
    if (one->reads)
        gps_frames_note(one->source, one->reads);
}

/* The kind of a copy, for its key: where the buffer is written or read. */
enum { WRITES = 1, READS = 2 };

void gps_frames_begin_write(const struct gps_write *write) {
    struct gps_write room;
    gps_frames_begin(write->stream);
    for (uint64_t n = 0; n < gps_write_count(write); n++) {
        const struct gps_write *one = gps_write_nth(write, n, &room);
        if (one->lasting) {
            note_node(one);
            continue;
        }
        if (one->size)
            gps_frames_add(one->to, one->size, WRITES + 4 * (uint64_t)one->kind);
        if (one->reads)
            gps_frames_add(one->source, one->reads, READS);
    }
}

static bool is_on_host(uint64_t address) {
    const enum gps_memory_kind kind = gps_ops->kind(address);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

/* Whether the copy has ended when it returns: one from or to main memory that is no stream's. */
static bool waits(const struct gps_write *write) {
    return !write->ordered && !write->lasting && !write->list &&
           (!write->size || gps_write_is_upload(write) || is_on_host(write->to));
}

void gps_frames_end_write(const struct gps_write *write, int code) {
    gps_frames_end(code == GPS_OK && call.count && waits(write));
}

/* --- the start --- */

void gps_frames_start(const struct gps_config *config, const struct gps_program *program) {
    if (config->options.mode != GPS_MODE_SHARE || !gps_operations->has_blocks)
        return;
    for (size_t i = 0; !gps_frames_active && i < config->rule_count; i++)
        gps_frames_active =
            gps_rule_is_for(&config->rules[i], program->name, program->executable) &&
            gps_config_has_frames(config, &config->rules[i]);
}
