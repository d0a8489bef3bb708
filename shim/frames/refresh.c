/* refresh.c - a reader's buffer gets another frame; see buffer.h. */
#include "buffer.h"
#include "directory/processes.h"
#include "directory/record.h"
#include "directory/region.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "util/clock.h"

/* --- behind the copy, in a thread of the driver's --- */

static void reader_release_slot(struct gps_buffer *buffer) {
    gps_buffer_file_lock();
    buffer->reader.slot = 0;
    gps_frame_file_put_reader(&buffer->file, buffer->place, &buffer->reader);
    gps_buffer_file_unlock();
}

static void refreshed(void *arg) {
    struct gps_frame_copy *copy = arg;
    GPS_SCOPE();
    reader_release_slot(copy->buffer);
    copy->busy = false;
    copy->buffer->under_way--;
}

/* --- the frame to read --- */

static int frames_said_read(struct gps_buffer *buffer, struct gps_frames_said *said) {
    gps_buffer_file_lock();
    const int status = gps_frame_file_read(&buffer->file, said);
    gps_buffer_file_unlock();
    return status;
}

/* The slot of a frame that the reader lacks: the newest, or with EACH the oldest. -1: none. */
static int frame_next_slot(const struct gps_buffer *buffer, const struct gps_frames_said *said) {
    const bool each = buffer->head.mode == GPS_FRAMES_EACH;
    int found = -1;
    for (unsigned i = 0; i < buffer->head.slots; i++) {
        const uint64_t frame = said->slot[i].frame;
        if (frame > buffer->reader.have && (found < 0 || (frame < said->slot[found].frame) == each))
            found = (int)i;
    }
    return found;
}

/* Takes the slot for this reader, until reader_release_slot(). Notes it first, then reads its frame
 * again; claim (publish.c) has the other half. False: it was written meanwhile. */
static bool reader_take_slot(struct gps_buffer *buffer, unsigned slot, uint64_t frame) {
    struct gps_frames_said now;
    gps_buffer_file_lock();
    buffer->reader.slot = slot + 1;
    buffer->reader.frame = frame;
    const int status = gps_frame_file_put_reader(&buffer->file, buffer->place, &buffer->reader);
    gps_buffer_file_unlock();
    gps_frame_file_between();
    if (status == 0 && frames_said_read(buffer, &now) == 0 && now.slot[slot].frame == frame)
        return true;
    reader_release_slot(buffer);
    return false;
}

/* Tries until a frame is the reader's. -1: there is none. */
static int frame_find(struct gps_buffer *buffer, struct gps_frames_said *said) {
    for (unsigned i = 0; i < 8; i++) {
        if (frames_said_read(buffer, said) < 0)
            return -1;
        const int slot = frame_next_slot(buffer, said);
        if (slot < 0 || reader_take_slot(buffer, (unsigned)slot, said->slot[slot].frame))
            return slot;
    }
    return -1;
}

/* Whether another frame may come. */
static bool may_come(const struct gps_buffer *buffer, const struct gps_frames_said *said) {
    struct gps_region_record record;
    return !said->writer.ended &&
           gps_region_read(gps_membership_store(), &buffer->head.region, &record, NULL) == 0 &&
           gps_lease_probe(gps_membership_store(), gps_record_creator(&record)) == GPS_ALIVE;
}

static void be_late(struct gps_buffer *buffer) {
    struct gps_region_record record;
    gps_buffer_file_lock();
    buffer->reader.late++;
    gps_frame_file_put_reader(&buffer->file, buffer->place, &buffer->reader);
    gps_buffer_file_unlock();
    if (gps_region_read(gps_membership_store(), &buffer->head.region, &record, NULL) == 0)
        gps_buffer_tell_late(buffer, gps_record_creator(&record));
}

/* EACH: waits for the next frame, and until our last copy has released its slot. */
static int frame_await(struct gps_buffer *buffer, struct gps_scope *scope,
                       struct gps_frames_said *said) {
    const uint64_t until = gps_clock_monotonic() + buffer->head.timeout;
    const uint64_t have = buffer->reader.have;
    int slot = -1;
    while (buffer->under_way || (slot = frame_find(buffer, said)) < 0) {
        if (!buffer->under_way && !may_come(buffer, said))
            return -1;
        if (gps_clock_monotonic() >= until) {
            be_late(buffer);
            return -1;
        }
        if (!gps_buffer_nap(buffer, scope) || buffer->reader.have != have)
            return -1; /* or another thread has got it */
    }
    return slot;
}

static void reader_note_frame(struct gps_buffer *buffer, const struct gps_frames_slot *slot) {
    struct gps_frames_reader *reader = &buffer->reader;
    gps_buffer_file_lock();
    reader->left_out += reader->have ? slot->frame - reader->have - 1 : 0;
    reader->have = slot->frame;
    reader->at = slot->at;
    reader->read++;
    gps_frame_file_put_reader(&buffer->file, buffer->place, reader);
    gps_buffer_file_unlock();
}

void gps_buffer_refresh(struct gps_buffer *buffer, struct gps_scope *scope) {
    struct gps_frames_said said;
    const bool each = buffer->head.mode == GPS_FRAMES_EACH;
    const int slot = each                ? frame_await(buffer, scope, &said)
                     : buffer->under_way ? -1 /* the buffer's last copy has not ended */
                                         : frame_find(buffer, &said);
    if (slot < 0)
        return;
    gps_buffer_count(buffer);
    reader_note_frame(buffer, &said.slot[slot]);
    if (!gps_buffer_follow(buffer) ||
        !gps_buffer_copy(buffer, (unsigned)slot, said.slot[slot].frame, refreshed))
        reader_release_slot(buffer);
}
