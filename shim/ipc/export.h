/*
 * export.h - regions of this process: published at their first export, closed before they are
 * freed.
 *
 * Owns the life of a gps_export: made here, attached to its allocation in the registry, handed to
 * defer.h when the program frees it while others hold it, and ended here, leaving a tombstone in
 * the directory (the newest 1,024) by which a stale handle is known.
 */
#ifndef GPS_EXPORT_H
#define GPS_EXPORT_H

#include "registry/registry.h"

/* The driver's free as the program called it. */
struct gps_release {
    int (*call)(uint64_t pointer, void *stream);
    void *stream;
    bool ordered; /* on a stream: it waits for nothing */
};

/* The program got the handle of a pointer from the driver: publish the region, the first time. */
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

/* The program frees an exported allocation, which the caller has taken from the registry. Asks
 * policy, and frees with `release` if and when that is the answer. */
int gps_export_free(const struct gps_alloc *alloc, struct gps_release release);

/* Waits for the device as a free does. Inside a scope that has entered a context. */
int gps_export_synchronize(void);

/* Changes the published state; a record that is not published only changes in memory. */
void gps_export_set_state(struct gps_export *region, enum gps_state state, uint64_t until);
/* New importers no longer find it by its name. */
void gps_export_unname(struct gps_export *region);
/* The memory is gone: tombstone, name, object. */
void gps_export_end(struct gps_export *region);
/* At the end of the process: removes the record, or leaves it for those who may still ask. */
void gps_export_leave(struct gps_export *region, bool keep_record);
void gps_export_remove_tombstones(void);

/* Who holds it now and since when: the number of users, and the first `max` of them. */
unsigned gps_export_users(const struct gps_export *region, struct gps_party *users, unsigned max);

void gps_export_reset(void); /* in a forked child */

#endif
