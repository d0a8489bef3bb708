/*
 * lease.h - this process's file in procs/, and the question whether another process lives.
 *
 * The lease is an open file description (OFD) lock on the whole of the process's own file. The
 * kernel drops it however the process dies, and at exec. It is held by a mapping, not by a
 * descriptor: the file is locked, mapped PROT_NONE with MADV_DONTFORK (never touched, so nobody's
 * truncate can hurt), and the descriptor closed. So programs that close every descriptor cannot
 * lose it, and a forked child cannot keep it alive. Where closing drops the lock all the same
 * (probed once, after the fact), the descriptor is kept instead.
 *
 * Slots are written through a second, unlocked descriptor: close-on-exec, moved high, compared by
 * device and inode before each write and opened again when a program closed it under us.
 *
 * A struct gps_lease has one owner, who serialises gps_lease_write calls. 0 or -errno.
 */
#ifndef GPS_LEASE_H
#define GPS_LEASE_H

#include <sys/types.h>

#include "file.h"

/* A process can publish this many open regions. */
#define GPS_SLOTS_MAX (1 << 18)

struct gps_lease {
    const struct gps_store *store;
    struct gps_owner self;
    void *hold;   /* the mapping that keeps the lock; MAP_FAILED where lock_fd does */
    int lock_fd;  /* -1 unless the mapping does not hold the lock */
    int write_fd; /* -1 until first used */
    dev_t device;
    ino_t inode;
};

/* Fills in everything about the calling process, with a fresh nonce (getrandom). Never fails: what
 * cannot be read is 0, the command "?", as is every character of it that is not printable ASCII. No
 * malloc. */
void gps_owner_self(struct gps_owner *self);

/* <store>/procs/<owner>: the path of a process's file. */
void gps_lease_path(const struct gps_store *store, const struct gps_owner *owner,
                    char path[GPS_FILE_PATH]);

/* Creates, locks and writes procs/<self> under a temporary name, then renames it into place: nobody
 * ever sees it unlocked. -ENOSPC with little room left, as gps_region_publish. */
int gps_lease_take(const struct gps_store *store, const struct gps_owner *self,
                   struct gps_lease *lease);

/* Clean end: removes the file, then lets go. */
void gps_lease_drop(struct gps_lease *lease);

/* In a forked child: lets go of what it inherited without touching the parent's file or lock. Not
 * for a vfork or CLONE_VM child: its lease struct is the parent's. */
void gps_lease_forget(struct gps_lease *lease);

/* Writes slot `index` (sealed; all zero frees it) with one pwrite. -EINVAL from GPS_SLOTS_MAX on;
 * -ENOENT when the file was removed or replaced. */
int gps_lease_write(struct gps_lease *lease, unsigned index, const struct gps_slot *slot);

enum gps_liveness { GPS_DEAD = 0, GPS_ALIVE = 1 };

/* Whether the process image `who` (pid_ns, pid, start, nonce) lives: a live one's file exists and
 * is locked. Asks through a fresh open each time (F_OFD_GETLK on the owning description says
 * "free"). In our own pid namespace a locked file is not believed when /proc says that the process
 * is gone, a zombie, or another (its start time differs): a child made by a bare clone() can hold
 * its dead parent's descriptor. A file that is not there is DEAD; one that cannot be opened for
 * another reason (EMFILE) counts as ALIVE, so that nobody's memory is freed or name taken on a
 * guess. `who` may be ourselves. */
enum gps_liveness gps_lease_probe(const struct gps_store *store, const struct gps_owner *who);

/* Calls fn for every live process with its header and its used slots (valid ones only, intents
 * included), for every dead one with alive = false and no slots. Invalid files: status -EBADMSG and
 * why, of the header only what the file name says, no slots. The slots live in a buffer that is
 * reused: copy what you keep. Allocates (malloc) for files of more than 16 slots. fn returns false
 * to stop. */
struct gps_proc {
    struct gps_proc_header header;
    bool alive;
    int status;
    const char *why;
    char file[GPS_PROC_NAME];
    const struct gps_slot *slots;
    unsigned slot_count;
};
typedef bool gps_proc_fn(void *arg, const struct gps_proc *proc);
int gps_proc_each(const struct gps_store *store, gps_proc_fn *fn, void *arg);

/* Who holds a region: live processes with a valid slot for it, `except` (may be NULL) left out.
 * Returns the number of users (which may exceed max) or -errno; fills at most max. A process whose
 * header is damaged counts too, without its command and uid. */
struct gps_user {
    struct gps_owner owner;
    struct gps_slot slot;
};
int gps_users_of(const struct gps_store *store, const struct gps_id *region,
                 const struct gps_owner *except, struct gps_user *users, unsigned max);

#endif
