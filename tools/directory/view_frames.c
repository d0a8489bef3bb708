#include "view_frames.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

static bool frames_reader_is_alive(const struct view *view,
                                   const struct gps_frames_reader *reader) {
    const struct view_process *process =
        reader->owner.pid ? view_process_find(view, &reader->owner) : NULL;
    return process && process->alive;
}

static bool is_as_the_record_says(const struct view_region *region,
                                  const struct gps_frames_head *head) {
    return head->mode == region->record.frames && head->slots == region->record.frame_slots;
}

bool view_frames_read(const struct view *view, const struct view_region *region,
                      struct view_frames *frames) {
    const struct gps_region_record *record = &region->record;
    struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX];
    if (record->frames == GPS_FRAMES_OFF)
        return false;
    frames->reader_count = 0;
    frames->status = gps_frame_file_look(&view->store, &record->id, &frames->said, readers);
    frames->now = gps_clock_monotonic();
    if (frames->status == 0 && !is_as_the_record_says(region, &frames->said.head))
        frames->status = -EBADMSG;
    for (size_t i = 0; frames->status == 0 && i < GPS_FRAMES_READERS_MAX; i++)
        if (frames_reader_is_alive(view, &readers[i]))
            frames->readers[frames->reader_count++] = readers[i];
    return true;
}

uint64_t view_frames_age(const struct view_frames *frames, uint64_t at) {
    return at < frames->now ? frames->now - at : 0;
}

const char *view_frames_mode(const struct view_region *region) {
    return region->record.frames == GPS_FRAMES_EACH ? "each" : "latest";
}

const char *view_frames_trouble(const struct view_frames *frames) {
    return frames->status == -EBADMSG  ? "their file is damaged"
           : frames->status == -ENOENT ? "their file is gone"
                                       : strerror(-frames->status);
}
