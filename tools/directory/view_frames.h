/*
 * view_frames.h - the whole frames of a region (gpushare/frames.h), as they are now.
 *
 * A reader that is dead counts as none, though its entry stays until another one takes it.
 */
#pragma once

#include "directory/frame_file.h"
#include "view.h"

struct view_frames {
    int status;   /* 0, or -errno: of what follows nothing is known */
    uint64_t now; /* CLOCK_MONOTONIC, ns */
    struct gps_frames_said said;
    struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX];
    size_t reader_count;
};

/* False: the region has none. */
bool view_frames_read(const struct view *view, const struct view_region *region,
                      struct view_frames *frames);

/* "latest", as a rule says it. */
const char *view_frames_mode(const struct view_region *region);
/* Why nothing is known of them: a phrase. */
const char *view_frames_trouble(const struct view_frames *frames);
/* How long ago that was, in ns. */
uint64_t view_frames_age(const struct view_frames *frames, uint64_t at);
