/* buffer.c - a buffer's lock, its objects of the driver's, and copies of it; see buffer.h. */
#include "buffer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "log/event_log.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"

static struct {
    GPS_LOCK(GPS_RANK_FRAMES) lock;
    GPS_LOCK(GPS_RANK_FRAME_FILES) file_lock;
} state;
GPS_FORGOTTEN(state);

void gps_buffer_lock(void) {
    gps_lock_take(&state.lock);
}

void gps_buffer_unlock(void) {
    gps_lock_give(&state.lock);
}

int gps_buffer_thread(void) {
    return (int)syscall(SYS_gettid);
}

void gps_buffer_file_lock(void) {
    gps_lock_take(&state.file_lock);
}

void gps_buffer_file_unlock(void) {
    gps_lock_give(&state.file_lock);
}

/* --- the driver's objects --- */

bool gps_buffer_equip(struct gps_buffer *buffer) {
    return gps_ops->stream_make && gps_ops->stream_make(&buffer->stream) == GPS_OK &&
           gps_ops->event_make(&buffer->mark) == GPS_OK &&
           gps_ops->event_make(&buffer->copied) == GPS_OK;
}

/* The same for a stream of another context than the buffer's: an event is recorded in its own. */
static bool follow_foreign(const struct gps_buffer *buffer, uint64_t stream) {
    struct gps_scope inner;
    uint64_t context, mark;
    if (gps_ops->stream_context(stream, &context) != GPS_OK || context == buffer->context)
        return false;
    const bool made =
        gps_scope_enter(&inner, context) == GPS_OK && gps_ops->event_make(&mark) == GPS_OK;
    bool follows = made && gps_ops->event_record(mark, stream) == GPS_OK;
    gps_scope_end(&inner);
    follows = follows && gps_ops->stream_follow(buffer->stream, mark) == GPS_OK;
    if (made)
        gps_ops->event_free(mark);
    return follows;
}

bool gps_buffer_follow_stream(struct gps_buffer *buffer, uint64_t stream) {
    if (gps_ops->event_record(buffer->mark, stream) != GPS_OK)
        return follow_foreign(buffer, stream);
    return gps_ops->stream_follow(buffer->stream, buffer->mark) == GPS_OK;
}

bool gps_buffer_can_name(const struct gps_buffer *buffer, unsigned i) {
    return !buffer->touched[i].thread || buffer->touched[i].thread == gps_buffer_thread();
}

bool gps_buffer_follow(struct gps_buffer *buffer) {
    bool all = !buffer->crowded;
    for (unsigned i = 0; all && i < buffer->touched_count; i++)
        all = gps_buffer_can_name(buffer, i) &&
              gps_buffer_follow_stream(buffer, buffer->touched[i].stream);
    buffer->touched_count = 0;
    buffer->crowded = buffer->left = false;
    return all;
}

static struct gps_frame_copy *copy_of(struct gps_buffer *buffer, unsigned slot, uint64_t frame) {
    struct gps_frame_copy *copy = &buffer->copies[slot];
    copy->buffer = buffer;
    copy->slot = slot;
    copy->frame = frame;
    copy->busy = true;
    buffer->under_way++;
    return copy;
}

bool gps_buffer_copy(struct gps_buffer *buffer, unsigned slot, uint64_t frame,
                     void (*done)(void *copy)) {
    const uint64_t there = buffer->slots + slot * buffer->stride;
    struct gps_frame_copy *const copy = copy_of(buffer, slot, frame);
    int code =
        gps_ops->copy_behind(buffer->writes ? there : buffer->base,
                             buffer->writes ? buffer->base : there, buffer->size, buffer->stream);
    if (code == GPS_OK)
        code = gps_ops->event_record(buffer->copied, buffer->stream);
    buffer->pending = code == GPS_OK;
    if (code == GPS_OK)
        code = gps_ops->call_behind(buffer->stream, done, copy);
    if (code == GPS_OK)
        return true;
    gps_ops->stream_wait(buffer->stream); /* its queued part ends before any thread goes on */
    copy->busy = false;
    buffer->under_way--;
    return false;
}

bool gps_buffer_nap(struct gps_buffer *buffer, struct gps_scope *scope) {
    buffer->pinned++;
    gps_buffer_unlock();
    gps_scope_end(scope);
    gps_program_signals_poll(NULL, GPS_BUFFER_NAP);
    const int code = gps_scope_enter(scope, buffer->context);
    gps_buffer_lock();
    buffer->pinned--;
    return code == GPS_OK && !buffer->gone;
}

void gps_buffer_tell_late(struct gps_buffer *buffer, const struct gps_owner *whom) {
    GPS_NEW_TEXT(text, 160);
    const struct gps_party party = {.owner = *whom};
    if (buffer->late_for == whom->nonce)
        return;
    buffer->late_for = whom->nonce;
    struct gps_report report = gps_report_new(GPS_FRAME_LATE);
    gps_text_str(&text, buffer->writes ? "the frame was left out for it after "
                                       : "no other frame came within ");
    gps_text_duration(&text, buffer->head.timeout);
    report.detail = text.bytes;
    report.name = buffer->name;
    report.region = &buffer->head.region;
    report.size = buffer->size;
    report.pointer = buffer->base;
    report.others = &party;
    report.other_count = 1;
    gps_report_send(&report);
}

struct sum {
    uint64_t count, left_out;
};

static struct sum frames_sum(const struct gps_buffer *buffer) {
    return buffer->writes ? (struct sum){buffer->frame, buffer->writer.left_out}
                          : (struct sum){buffer->reader.read, buffer->reader.left_out};
}

/* `to` is of CLOCK_MONOTONIC. */
static void frames_tell(struct gps_buffer *buffer, uint64_t to) {
    const struct sum sum = frames_sum(buffer);
    const uint64_t ago = gps_clock_monotonic() - to;
    const struct gps_event_line line = {.what = "frames",
                                        .time = gps_clock_now() - ago,
                                        .region = &buffer->head.region,
                                        .name = buffer->name,
                                        .ns = to - buffer->told.since,
                                        .how = buffer->writes ? "writer" : "reader",
                                        .count = sum.count - buffer->told.count,
                                        .left_out = sum.left_out - buffer->told.left_out};
    if (line.count || line.left_out)
        gps_event_log_write(&line);
    buffer->told.count = sum.count;
    buffer->told.left_out = sum.left_out;
}

/* A line's time ends with the next frame, for true frames per second; else after a second. */
static uint64_t frames_told_end(const struct gps_buffer *buffer, uint64_t now) {
    const uint64_t since = buffer->told.since;
    return now < since + 2 * GPS_SECOND ? now : since + GPS_SECOND;
}

void gps_buffer_count(struct gps_buffer *buffer) {
    if (!gps_event_log_is_on())
        return;
    const uint64_t now = gps_clock_monotonic();
    if (buffer->told.since && now < buffer->told.since + GPS_SECOND)
        return;
    if (buffer->told.since)
        frames_tell(buffer, frames_told_end(buffer, now));
    buffer->told.since = now;
}

void gps_buffer_count_last(struct gps_buffer *buffer) {
    if (buffer->told.since)
        frames_tell(buffer, frames_told_end(buffer, gps_clock_monotonic()));
    buffer->told.since = 0;
}
