/*
 * keeper_client.h - the client's side of the protocol with the keeper (gpushare/keeper.h).
 *
 * Each call opens a connection of its own, so no descriptor stays open between calls. A call takes
 * at most `timeout` nanoseconds; until then it repeats the request if the keeper dies or is too
 * busy. One call waits 0.2 s for a keeper that is stopped or hung. After that, all calls return
 * -ETIMEDOUT at once, until the keeper replies to a ping, or no thread has pinged it for 2 s: then
 * a call waits again. The program's signals are unblocked in all waits. If there is no keeper, a
 * deposit starts one (keeper_spawn.c); a get and a drop start one if there is a record that it
 * would adopt. Functions return 0 or -errno and write their outputs only on success. They may be
 * called from any thread, inside a gps_scope. No malloc.
 *
 * Errors of every call: -ETIMEDOUT: no reply in time. -EPERM: the listener belongs to another user.
 * -ENOENT, -EACCES: a keeper had to be started and its executable is missing.
 * -ETOOMANYREFS: the kernel passes no more descriptors of this user, to the keeper or from it. A
 * deposit waits for that once, as for a keeper that does not answer: until one has been sent again,
 * each tries it only once. A get waits until its time is over. -EMFILE, -ENFILE: this process, or
 * the system, has no descriptor left.
 */
#pragma once

#include <stddef.h>

#include "directory/store.h"

/* The timeout of the library's calls in nanoseconds, enough to start a keeper. */
#define GPS_KEEPER_WAIT (UINT64_C(5) * 1000000000)

/* Whether the keeper did not reply to a call just now, and has not replied to one since. */
bool gps_keeper_is_unresponsive(void);

/* Deposits a region that this process created, or one of a dead keeper that it has open. The
 * descriptor stays the caller's. -EEXIST: the keeper has the region already. The creator must have
 * claimed the name of the record; the keeper points it at the region, so that the creator need not
 * call gps_name_point. -EPERM: this process is not the creator, and the keeper does not wait for
 * the region. -ENOBUFS: the keeper has no room for more. */
int gps_keeper_deposit(const struct gps_store *store, const struct gps_region_record *record,
                       const struct gps_owner *self, int descriptor, uint64_t timeout);
/* Gets a descriptor of the region; it is close-on-exec and belongs to the caller. Repeats the
 * request while the keeper waits for a process to deposit the region. -ENOENT: the keeper does not
 * have it. -ENODATA: it was offloaded. */
int gps_keeper_get(const struct gps_store *store, const struct gps_id *id,
                   const struct gps_owner *self, uint64_t timeout, int *descriptor);
/* The same where there is no other way: it waits for a silent keeper until the time is over, even
 * if other calls have just waited in vain. */
int gps_keeper_get_patiently(const struct gps_store *store, const struct gps_id *id,
                             const struct gps_owner *self, uint64_t timeout, int *descriptor);
/* Reports that this process has closed the region. Starts no keeper. */
int gps_keeper_released(const struct gps_store *store, const struct gps_id *id,
                        const struct gps_owner *self, uint64_t timeout);
/* Drops a region by its name, or by its id if name is NULL. */
int gps_keeper_drop(const struct gps_store *store, const char *name, const struct gps_id *id,
                    const struct gps_owner *self, uint64_t timeout);
/* Has the keeper drop the merged blocks that no process has open, but not those kept for ever. 0:
 * it had some. -ENOENT: it had none, or there is no keeper; it starts none. */
int gps_keeper_reclaim(const struct gps_store *store, const struct gps_owner *self,
                       uint64_t timeout);
/* Has the keeper release a block's memory on the GPU: GPS_KEEPER_OFFLOAD (gpushare/keeper.h) with
 * its errors. `bytes` is the memfd, which stays the caller's, or -1. Starts no keeper. */
int gps_keeper_offload(const struct gps_store *store, const struct gps_id *id,
                       const struct gps_owner *self, int bytes, uint64_t timeout);
/* Gets the bytes of such a block in a memfd, which is the caller's, to deposit it again:
 * GPS_KEEPER_RELOAD with its errors. -ETIMEDOUT: another process reloads it. */
int gps_keeper_reload(const struct gps_store *store, const struct gps_id *id,
                      const struct gps_owner *self, uint64_t keep, uint64_t timeout, int *bytes);
/* The inode of the keeper's socket, which differs between keepers; 0: there is none. */
uint64_t gps_keeper_socket(const struct gps_store *store);
/* The inode of the socket if its keeper replies and it is not the socket `known`; else 0. A keeper
 * that was unresponsive is pinged again. */
uint64_t gps_keeper_other(const struct gps_store *store, const struct gps_owner *self,
                          uint64_t known);

/* Connects to the keeper: a socket that does not block, the caller's, or -errno. */
int gps_keeper_connect(const struct gps_store *store);
/* Gets the identity of the process that serves and the number of its regions. Starts no keeper.
 * -ENOENT: there is none. */
int gps_keeper_ping(const struct gps_store *store, const struct gps_owner *self, uint64_t timeout,
                    struct gps_owner *keeper, uint64_t *regions);

/* --- keeper_spawn.c: starts the keeper from inside a program, invisibly to the program --- */

/* The program gets no SIGCHLD, its wait() finds no child, and the keeper inherits none of its
 * descriptors or environment. The child runs on a stack of its own in the program's memory, as
 * after vfork, until it has executed `gpushare keeper`. It becomes a child of init in a session of
 * its own. Safe from any thread. No malloc. */

/* The path of the keeper's executable for programs that have the library preloaded:
 * GPUSHARE_KEEPER, else `gpushare` beside the library or in ../bin or ../../bin of its directory. A
 * program also looks in the same places around its own executable. 0, -ENOENT, -EACCES, -ENOMEM or
 * -ENAMETOOLONG. */
int gps_spawn_program(const char *library, char *path, size_t size);

/* Executes the keeper, and does not wait until it listens. The new process may end at once because
 * another one holds the leader lock. 0 or -errno. */
int gps_spawn_keeper(const struct gps_store *store);
