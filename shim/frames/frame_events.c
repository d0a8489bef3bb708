/* frame_events.c - how many frames go through a buffer, for the event log; see buffer.h. */
#include "buffer.h"
#include "log/event_log.h"
#include "util/clock.h"

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

/* A line's time ends with the next frame, so that frames per second are right; if that comes much
 * later, after a second. */
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
