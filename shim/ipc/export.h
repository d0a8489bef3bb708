/*
 * export.h - publishes the regions of this process, and ends them.
 *
 * This module makes a gps_export at the first export and attaches it to its allocation in the
 * registry. close_before_free.h gets it when the program frees it. It ends here, and leaves a
 * tombstone in the directory, by which a stale handle is known; the newest 1,024 tombstones
 * stay, and fewer beside more than four processes: 4,096 of all.
 *
 * Inside a gps_scope where not said otherwise. Any thread.
 */
#pragma once

#include "directory/frame_file.h"
#include "registry/registry.h"

/* The program got a pointer's handle from the driver: publishes the region once. No scope. */
void gps_export_first(uint64_t pointer, const uint8_t handle[GPS_HANDLE_BYTES]);

/* A rule exports an allocation with its handle as region `name`, which this process has claimed.
 * `allocated` is the rounded size. `frames`: it has room for slots, and so a file for its frames
 * (NULL: none); no process joins it before the caller's gps_frame_file_made. False: it could not be
 * published, and is private. */
bool gps_export_by_rule(const struct gps_alloc *alloc, uint64_t allocated,
                        const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_rule *rule,
                        const char *name, struct gps_frame_file *frames);

/* The same for memory of gps_mapping_create, which the keeper gets. Returns NULL, or a phrase that
 * says why it could not be published. */
const char *gps_export_to_keeper(const struct gps_alloc *alloc, uint64_t extent,
                                 const struct gps_rule *rule, const char *name,
                                 struct gps_frame_file *frames);

/* Whether the program has got a handle that could not be noted: other processes may open it. */
bool gps_export_missed(void);

/* The program frees such memory. No other process loses it, because it lives while any process has
 * it mapped. Returns the code for the program. Needs no scope. */
int gps_export_free_vmm(const struct gps_alloc *alloc);

/* Changes the state of the region in this process. Asserts the table GPS_EXPORT_STATES. */
void gps_export_become(struct gps_export *region, enum gps_export_state to);

/* Changes the published state: 0 or -errno. A record that is not published changes in memory. */
int gps_export_set_state(struct gps_export *region, enum gps_state state, uint64_t until);
/* No process opens the region from now on. False: that could not be published. */
bool gps_export_close(struct gps_export *region);
/* The same for a free. Nearly always no process has the region open, so a region without a name is
 * FREED at once, and its record is written once. One with a name is CLOSING first, because another
 * process may claim the name of a freed region. */
bool gps_export_close_unheld(struct gps_export *region);
/* Publishes the region as a final result; its hand-over time begins with the first call. False:
 * that could not be published. */
bool gps_export_publish_result(struct gps_export *region);
/* New importers do not find the region by its name any more. Rename undoes that. */
void gps_export_unname(struct gps_export *region);
void gps_export_rename(struct gps_export *region);
/* The memory is freed. Name and object go, and a tombstone stays. */
void gps_export_end(struct gps_export *region);
/* Keeps the record of a region that is over for a while, and removes the oldest such records. */
void gps_export_leave_tombstone(const struct gps_region_record *record);
/* The process ends. Removes the record, or leaves it for processes that still look for it. */
void gps_export_leave(struct gps_export *region, bool keep_record);
void gps_export_remove_tombstones(void);
