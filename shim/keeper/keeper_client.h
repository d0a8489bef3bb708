/*
 * keeper_client.h - the client's side of the keeper (gpushare/keeper.h).
 *
 * Each call is a connection of its own: no descriptor stays open between them, and none waits
 * longer than `patience` (nanoseconds); one that dies or is too busy is asked again until then.
 * Where no keeper lives, a deposit starts one; a get, a state and a drop do, too, when there is a
 * record that it would adopt (spawn.h says how: the program sees no child, signal or descriptor of
 * it). 0 or -errno; outputs are written only on success. Any thread; inside a gps_scope. No malloc.
 *
 * Of all: -ETIMEDOUT: no answer in time; -ENOENT, -EACCES of a call that starts one: there is no
 * executable; -EPERM: what listens there is another user's.
 */
#ifndef GPS_KEEPER_CLIENT_H
#define GPS_KEEPER_CLIENT_H

#include "directory/store.h"

/* What the shim's calls wait at most: a keeper is started within this, or answers. */
#define GPS_KEEPER_WAIT (UINT64_C(5) * 1000000000)

/* A record whose creator we are, or one that we hold of a keeper that died; the descriptor stays
 * the caller's. 0 also when the keeper has it already. Its name must be claimed by its creator; the
 * keeper points it at the region (gps_name_point by the creator is then a repetition). -EPERM: the
 * keeper does not wait for it, and we are not its creator; -EMFILE: it has no room for more. */
int gps_keeper_deposit(const struct gps_store *store, const struct gps_region_record *record,
                       const struct gps_owner *self, int descriptor, uint64_t patience);
/* A descriptor of the region, close-on-exec, the caller's. Asks again while the keeper waits for
 * somebody to deposit it. -ENOENT: it is not kept (any more); -ETIMEDOUT. */
int gps_keeper_get(const struct gps_store *store, const struct gps_id *id,
                   const struct gps_owner *self, uint64_t patience, int *descriptor);
/* -EPERM: we are not its creator. GPS_STATE_FREED drops it. */
int gps_keeper_set_state(const struct gps_store *store, const struct gps_id *id,
                         const struct gps_owner *self, enum gps_state state, uint64_t written,
                         uint64_t patience);
/* Starts none. */
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
