/*
 * export.h - regions of this process: how they are published, and how they end.
 *
 * Owns a gps_export from its first export on: it is made here, attached to its allocation in the
 * registry, handed to close_before_free.h when the program frees it, and ended here. The end leaves
 * a tombstone in the directory (the newest 1,024), by which a stale handle is known.
 *
 * Inside a gps_scope where not said otherwise. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* The program got the handle of a pointer from the driver: publishes the region, the first time.
 * Needs no scope. */
void gps_export_first(uint64_t pointer, const uint8_t handle[GPS_HANDLE_BYTES]);

/* A rule's: the allocation with its handle becomes region `name`, which this process has claimed.
 * `allocated` is the rounded size. False when it could not be published: then it is private. */
bool gps_export_by_rule(const struct gps_alloc *alloc, uint64_t allocated,
                        const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_rule *rule,
                        const char *name);

/* The same for memory of gps_mapping_create, which the keeper gets. NULL, or a phrase that says why
 * it could not be published. */
const char *gps_export_to_keeper(const struct gps_alloc *alloc, uint64_t extent,
                                 const struct gps_rule *rule, const char *name);

/* The program frees such memory. No other process loses anything by that: the memory lives while
 * any has it mapped. Returns the code for the program. Needs no scope. */
int gps_export_free_vmm(const struct gps_alloc *alloc);

/* The region's next state, in this process. Asserts GPS_EXPORT_STATES. */
void gps_export_become(struct gps_export *region, enum gps_export_state to);

/* Changes the published state: 0 or -errno. A record that is not published only changes in memory.
 */
int gps_export_set_state(struct gps_export *region, enum gps_state state, uint64_t until);
/* No process opens the region from now on. False: that could not be published. */
bool gps_export_close(struct gps_export *region);
/* The same, where nearly always no process has it open: FREED is then its last state, and written
 * once. A region with a name is CLOSING first: the name of a freed one is another process's to
 * claim.
 */
bool gps_export_close_unheld(struct gps_export *region);
/* Publishes the region as a final result; its hand-over time begins with the first call. False:
 * that could not be published. */
bool gps_export_publish_result(struct gps_export *region);
/* New importers no longer find it by its name; and they do again. */
void gps_export_unname(struct gps_export *region);
void gps_export_rename(struct gps_export *region);
/* The memory is freed: a tombstone stays, name and object go. */
void gps_export_end(struct gps_export *region);
/* At the end of the process: removes the record, or leaves it for those who may still ask. */
void gps_export_leave(struct gps_export *region, bool keep_record);
void gps_export_remove_tombstones(void);

void gps_export_reset(void); /* in a forked child */
