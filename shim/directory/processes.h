/*
 * processes.h - the other processes: whether they live, and which regions they have open.
 *
 * Errors, threads and memory are as in store.h. An entry of procs/ that is not a regular file of
 * this user is not a lease: its process counts as dead, unless the file is locked.
 */
#pragma once

#include "store.h"

/* The most regions that one process can publish as open. */
#define GPS_SLOTS_MAX (1 << 18)

enum gps_liveness { GPS_DEAD = 0, GPS_ALIVE = 1 };

/* Whether the process image `who` (pid_ns, pid, start, nonce) lives: its file exists and is locked.
 * The file is opened afresh for each call, because F_OFD_GETLK on the description that holds the
 * lock reports it as free; so `who` may be the calling process. In the caller's own pid namespace a
 * locked file does not count if /proc shows that the process ended, is a zombie or has another
 * start time: a child of a bare clone() can hold its dead parent's descriptor. A keeper's file
 * (GPS_VIA_KEEPER) counts, because its stand-by goes on under its name. A missing file means DEAD.
 * A file that cannot be opened for another reason (EMFILE) counts as ALIVE, so that no memory is
 * freed and no name is taken on a guess. */
enum gps_liveness gps_lease_probe(const struct gps_store *store, const struct gps_owner *who);
/* Whether its lease was removed though it may go on. Other pid namespaces' are not looked for. */
bool gps_lease_is_removed(const struct gps_store *store, const struct gps_owner *who);

/* Fills in the command of a process image, as its file has it. Without a file it stays as it is. */
void gps_proc_name(const struct gps_store *store, struct gps_owner *who);

struct gps_proc {
    struct gps_proc_header header; /* of an invalid file: only the parts of its name */
    bool alive;
    const char *why; /* the file is not valid; NULL: it is */
    char file[GPS_PROC_NAME];
    const struct gps_slot *slots; /* of a live process: its valid slots, intents included */
    unsigned slot_count;
    bool unknown; /* the process may have any region open: a slot is torn, or the file of the live
                     process may not be opened */
};

/* Calls fn for every process in procs/, until fn returns false. The slots lie in a buffer that is
 * reused: fn copies those that it needs. */
typedef bool gps_proc_fn(void *arg, const struct gps_proc *proc);
int gps_proc_each(const struct gps_store *store, gps_proc_fn *fn, void *arg);
/* How many processes have a file there. No file is opened, so dead ones count, too. */
unsigned gps_proc_count(const struct gps_store *store);

/* Whether a live process has published another /dev/shm than the caller's. */
bool gps_proc_has_other_shm(const struct gps_proc *proc);

/* Whether the process lives, and audit/ has all its exported events. False also where not known. */
bool gps_proc_has_told(const struct gps_store *store, const struct gps_owner *who);

struct gps_user {
    struct gps_owner owner;
    struct gps_slot slot;
};

/* The users of a region: the live processes with a valid slot for it, but neither `except` (which
 * may be NULL) nor processes that only cache it. Fills in at most max users and returns the number
 * of all, or -errno if it is not known whether a live process is one. A process with a damaged
 * header counts too; its command and uid are then not known. */
int gps_users_of(const struct gps_store *store, const struct gps_id *region,
                 const struct gps_owner *except, struct gps_user *users, unsigned max);

struct gps_user_counts {
    unsigned processes; /* that were looked at */
    unsigned caches;    /* of them: those that only cache the region */
};
/* The same for a region that is no merged block: users behind GPS_VIA_DIVIDER are not read. */
int gps_users_and_caches(const struct gps_store *store, const struct gps_id *region,
                         const struct gps_owner *except, struct gps_user *users, unsigned max,
                         struct gps_user_counts *counts);
