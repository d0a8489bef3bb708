/* publish.c - a writer's frame goes into a slot; see buffer.h. */
#include <string.h>

#include "buffer.h"
#include "directory/processes.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "util/clock.h"

/* --- behind the copy, in a thread of the driver's --- */

static void published(void *arg) {
    struct gps_frame_copy *copy = arg;
    struct gps_buffer *buffer = copy->buffer;
    GPS_SCOPE();
    struct gps_frames_slot slot = {.frame = copy->frame, .at = gps_clock_monotonic()};
    gps_buffer_file_lock();
    buffer->writer.newest = slot.frame;
    buffer->writer.at = slot.at;
    gps_frame_file_put_slot(&buffer->file, copy->slot, &slot);
    gps_frame_file_put_writer(&buffer->file, &buffer->writer);
    gps_buffer_file_unlock();
    copy->busy = false;
    buffer->under_way--;
}

/* --- the slot for a frame --- */

struct readers {
    struct gps_frames_reader all[GPS_FRAMES_READERS_MAX];
    int status;
};

static void readers_ask(struct gps_buffer *buffer, struct readers *readers) {
    gps_buffer_file_lock();
    readers->status = gps_frame_file_readers(&buffer->file, readers->all);
    gps_buffer_file_unlock();
}

static bool reader_lives(const struct gps_frames_reader *reader) {
    return reader->owner.pid &&
           gps_lease_probe(gps_membership_store(), &reader->owner) == GPS_ALIVE;
}

/* A reader whose lease went with the directory may still copy, though no writer waits for it. */
static bool may_read(const struct gps_frames_reader *reader) {
    return reader_lives(reader) || gps_lease_is_removed(gps_membership_store(), &reader->owner);
}

/* The reader of the slot, or NULL. Only such a reader's lease is probed. */
static const struct gps_frames_reader *reader_of(const struct readers *readers, unsigned slot) {
    for (unsigned i = 0; i < GPS_FRAMES_READERS_MAX; i++)
        if (readers->all[i].slot == slot + 1 && may_read(&readers->all[i]))
            return &readers->all[i];
    return NULL;
}

/* A reader that has not had the frame yet, or NULL. */
static const struct gps_frames_reader *readers_find_lacking(const struct readers *readers,
                                                            uint64_t frame) {
    for (unsigned i = 0; i < GPS_FRAMES_READERS_MAX; i++)
        if (readers->all[i].owner.pid && readers->all[i].have < frame &&
            reader_lives(&readers->all[i]))
            return &readers->all[i];
    return NULL;
}

static bool readers_have_any(const struct readers *readers) {
    for (unsigned i = 0; i < GPS_FRAMES_READERS_MAX; i++)
        if (reader_lives(&readers->all[i]))
            return true;
    return false;
}

static void slot_put_frame(struct gps_buffer *buffer, unsigned slot, uint64_t frame) {
    gps_buffer_file_lock();
    buffer->slot[slot].frame = frame;
    gps_frame_file_put_slot(&buffer->file, slot, &buffer->slot[slot]);
    gps_buffer_file_unlock();
}

/* The slot of the oldest frame that is not the newest, being copied, or of left_out. -1: none. */
static int oldest(const struct gps_buffer *buffer, uint32_t left_out) {
    int found = -1;
    for (unsigned i = 0; i < buffer->head.slots; i++)
        if (!(left_out >> i & 1) && !buffer->copies[i].busy &&
            (!buffer->frame || buffer->slot[i].frame != buffer->frame) &&
            (found < 0 || buffer->slot[i].frame < buffer->slot[found].frame))
            found = (int)i;
    return found;
}

/* EACH: whether no reader lacks the frame any more; *late is one that does. A writer waits once for
 * a first reader. */
static bool frame_is_over(struct gps_buffer *buffer, uint64_t frame,
                          struct gps_frames_reader *late) {
    struct readers readers;
    readers_ask(buffer, &readers);
    const struct gps_frames_reader *const who = readers_find_lacking(&readers, frame);
    if (who)
        *late = *who;
    return !who && readers.status == 0 && (buffer->forsaken || readers_have_any(&readers));
}

/* Takes the slot for the writer, if no reader has it. Clears its frame first, then reads the
 * readers; reader_take_slot (refresh.c) has the other half. False: the slot is as it was. */
static bool claim(struct gps_buffer *buffer, unsigned slot) {
    const uint64_t frame = buffer->slot[slot].frame;
    struct readers readers;
    slot_put_frame(buffer, slot, 0);
    gps_frame_file_between();
    readers_ask(buffer, &readers);
    if (readers.status == 0 && !reader_of(&readers, slot))
        return true;
    slot_put_frame(buffer, slot, frame);
    return false;
}

/* A slot that becomes the writer's. -1: none. EACH: only when no reader lacks its frame. */
static int slot_take_oldest(struct gps_buffer *buffer, bool each, struct gps_frames_reader *late) {
    uint32_t left_out = 0;
    int slot;
    for (; (slot = oldest(buffer, left_out)) >= 0; left_out |= 1u << slot) {
        const uint64_t frame = buffer->slot[slot].frame;
        if (each && frame && !frame_is_over(buffer, frame, late))
            return -1;
        if (claim(buffer, (unsigned)slot))
            return slot;
    }
    return -1;
}

static void frames_explain(const struct gps_buffer *buffer) {
    struct gps_explained_frames *const to = buffer->explained;
    if (!to)
        return;
    to->count = buffer->frame + buffer->writer.left_out;
    to->alike = buffer->turn.usual_waits.alike;
    to->odd = buffer->turn.odd;
    to->waits = gps_turn_number_of_waits(&buffer->turn);
    to->threads = gps_turn_has_threads(&buffer->turn);
}

void gps_buffer_leave_out(struct gps_buffer *buffer) {
    gps_buffer_file_lock();
    buffer->writer.left_out++;
    buffer->writer.odd = buffer->turn.odd;
    gps_frame_file_put_writer(&buffer->file, &buffer->writer);
    gps_buffer_file_unlock();
}

/* Sets the figures that go into the file with the frame. */
static void tell_of(struct gps_buffer *buffer, bool late) {
    gps_buffer_file_lock();
    buffer->writer.odd = buffer->turn.odd;
    buffer->writer.usual = gps_turn_number_of_waits(&buffer->turn);
    buffer->writer.late += late;
    gps_buffer_file_unlock();
}

/* LATEST: the newest frame's own slot, where readers that stopped hold all other slots. A reader
 * that looks during the copy keeps its frame. -1: the slot is being read, or written. */
static int take_newest(struct gps_buffer *buffer) {
    for (unsigned i = 0; buffer->frame && i < buffer->head.slots; i++)
        if (buffer->slot[i].frame == buffer->frame && !buffer->copies[i].busy && claim(buffer, i))
            return (int)i;
    return -1;
}

/* EACH: waits for readers that have not had the oldest frame. False: another thread has published
 * meanwhile, or the buffer is gone. */
static bool slot_await(struct gps_buffer *buffer, struct gps_scope *scope, int *slot) {
    const uint64_t until = gps_clock_monotonic() + buffer->head.timeout;
    const uint64_t frame = buffer->frame;
    struct gps_frames_reader late = {.slot = 0};
    while ((*slot = slot_take_oldest(buffer, true, &late)) < 0 && gps_clock_monotonic() < until) {
        if (!gps_buffer_nap(buffer, scope) || buffer->frame != frame)
            return false;
    }
    if (*slot >= 0)
        return true;
    buffer->forsaken = !late.owner.pid;
    tell_of(buffer, late.owner.pid != 0);
    if (late.owner.pid)
        gps_buffer_tell_late(buffer, &late.owner);
    *slot = slot_take_oldest(buffer, false, &late);
    return true;
}

void gps_buffer_publish(struct gps_buffer *buffer, struct gps_scope *scope) {
    struct gps_frames_reader late = {.slot = 0};
    const bool each = buffer->head.mode == GPS_FRAMES_EACH;
    gps_buffer_count(buffer);
    int slot = slot_take_oldest(buffer, each, &late);
    if (slot < 0 && !each)
        slot = take_newest(buffer);
    if (slot < 0 && each && !slot_await(buffer, scope, &slot))
        return;
    const uint64_t before = buffer->frame;
    tell_of(buffer, false);
    if (slot >= 0) {
        buffer->frame = before + 1;
        buffer->slot[slot].frame = buffer->frame;
    }
    if (slot < 0 || !gps_buffer_follow(buffer) ||
        !gps_buffer_copy(buffer, (unsigned)slot, buffer->frame, published)) {
        if (slot >= 0)
            slot_put_frame(buffer, (unsigned)slot, 0);
        buffer->frame = before;
        gps_buffer_leave_out(buffer);
    }
    frames_explain(buffer);
}
