/*
 * keeper.h - the client's side of the keeper (gpushare/keeper.h).
 *
 * Each call is a connection of its own: no descriptor stays open between them, and none waits
 * longer than `patience` (nanoseconds). Where no keeper lives, a deposit starts one and a get does,
 * too, when it has something to adopt: `gpushare keeper`, found beside the library (or by
 * GPUSHARE_KEEPER, a path), started so that the program sees no child, no signal and no descriptor
 * of it. 0 or -errno; outputs are written only on success. Any thread; inside a gps_scope.
 */
#ifndef GPS_KEEPER_H
#define GPS_KEEPER_H

#include "store.h"

/* A sealed record whose creator we are, or one that we hold of a keeper that died; the descriptor
 * stays the caller's. 0 also when the keeper has it already. */
int gps_keeper_deposit(const struct gps_store *store, const struct gps_region_record *record,
                       const struct gps_owner *self, int descriptor, uint64_t patience);
/* A descriptor of the region, close-on-exec, the caller's. Asks again while the keeper waits for
 * somebody to deposit it. -ENOENT: it is not kept (any more); -ETIMEDOUT. */
int gps_keeper_get(const struct gps_store *store, const struct gps_id *id,
                   const struct gps_owner *self, uint64_t patience, int *descriptor);
int gps_keeper_set_state(const struct gps_store *store, const struct gps_id *id,
                         const struct gps_owner *self, enum gps_state state, uint64_t written,
                         uint64_t patience);
int gps_keeper_released(const struct gps_store *store, const struct gps_id *id,
                        const struct gps_owner *self, uint64_t patience);
/* By name, or by id where name is NULL. */
int gps_keeper_drop(const struct gps_store *store, const char *name, const struct gps_id *id,
                    const struct gps_owner *self, uint64_t patience);
/* The inode of the keeper's socket, which each keeper makes anew; 0: there is none. */
uint64_t gps_keeper_socket(const struct gps_store *store);

/* Who keeps; never starts one. -ENOENT: nobody. */
int gps_keeper_ping(const struct gps_store *store, const struct gps_owner *self, uint64_t patience,
                    struct gps_owner *keeper, uint64_t *regions);

#endif
