/*
 * keeper_client.h - the client's side of the protocol with the keeper (gpushare/keeper.h).
 *
 * Each call opens a connection of its own, so no descriptor stays open between calls. A call takes
 * at most `patience` nanoseconds; until then it repeats the request if the keeper dies or is too
 * busy. The silence of a keeper that is stopped or hung is waited for 0.2 s and once: from then on
 * calls answer -ETIMEDOUT at once, until the keeper answers a ping. The program's signals are
 * handled in all waits. If no keeper lives, a deposit starts one (keeper_spawn.h); a get and
 * a drop start one if there is a record that it would adopt. Functions return 0 or -errno and
 * write their outputs only on success. They may be called from any thread, inside a gps_scope. No
 * malloc.
 *
 * Errors of every call: -ETIMEDOUT: no answer in time. -EPERM: the listener belongs to another
 * user. -ENOENT, -EACCES: a keeper had to be started and its executable is missing.
 */
#pragma once

#include "directory/store.h"

/* The patience of the library's calls in nanoseconds, enough to start a keeper. */
#define GPS_KEEPER_WAIT (UINT64_C(5) * 1000000000)

/* Whether the keeper did not answer, and has not since. */
bool gps_keeper_is_unresponsive(void);
void gps_keeper_reset(void); /* in a forked child */

/* Deposits a region that this process created, or one of a dead keeper that it has open. The
 * descriptor stays the caller's. -EEXIST: the keeper has the region already. The creator must have
 * claimed the name of the record; the keeper points it at the region, so that the creator need not
 * call gps_name_point. -EPERM: this process is not the creator, and the keeper does not wait for
 * the region. -EMFILE: the keeper has no room for more. */
int gps_keeper_deposit(const struct gps_store *store, const struct gps_region_record *record,
                       const struct gps_owner *self, int descriptor, uint64_t patience);
/* Gets a descriptor of the region; it is close-on-exec and belongs to the caller. Repeats the
 * request while the keeper waits for a process to deposit the region. -ENOENT: the keeper does not
 * have it. */
int gps_keeper_get(const struct gps_store *store, const struct gps_id *id,
                   const struct gps_owner *self, uint64_t patience, int *descriptor);
/* Reports that this process has closed the region. Starts no keeper. */
int gps_keeper_released(const struct gps_store *store, const struct gps_id *id,
                        const struct gps_owner *self, uint64_t patience);
/* Drops a region by its name, or by its id if name is NULL. */
int gps_keeper_drop(const struct gps_store *store, const char *name, const struct gps_id *id,
                    const struct gps_owner *self, uint64_t patience);
/* The inode of the keeper's socket, which differs between keepers; 0: there is none. */
uint64_t gps_keeper_socket(const struct gps_store *store);
/* The socket of a keeper that answers and is another than the one known; 0: there is none. One that
 * was silent is asked again. */
uint64_t gps_keeper_other(const struct gps_store *store, const struct gps_owner *self,
                          uint64_t known);

/* Identifies the keeper and the number of its regions. Starts no keeper. -ENOENT: there is none. */
int gps_keeper_ping(const struct gps_store *store, const struct gps_owner *self, uint64_t patience,
                    struct gps_owner *keeper, uint64_t *regions);
