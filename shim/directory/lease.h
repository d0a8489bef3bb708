/*
 * lease.h - this process's own file in procs/, whose lock tells other processes that it lives.
 *
 * The lease is an open file description (OFD) lock on the whole file. The kernel drops the lock
 * when the process dies or calls exec. A mapping holds it rather than a descriptor: the file is
 * locked, mapped PROT_NONE with MADV_DONTFORK, and the descriptor is closed. So a program that
 * closes every descriptor cannot lose the lock, and a forked child cannot keep it. The mapping is
 * never touched, so a truncated file does no harm. On a system where the close drops the lock
 * anyway, which is probed once, the descriptor stays open instead.
 *
 * Slots are written through a second descriptor without a lock. It is close-on-exec and has a high
 * number; before each write its device and inode are compared, and it is opened again if the
 * program has closed it.
 *
 * A struct gps_lease has one owner, which serialises the calls. Functions return 0 or -errno.
 */
#pragma once

#include <sys/types.h>

#include "file.h"
#include "processes.h"

struct gps_lease {
    const struct gps_store *store;
    struct gps_owner self;
    void *hold;         /* the mapping that holds the lock; MAP_FAILED if lock_fd holds it */
    bool by_descriptor; /* lock_fd is to hold the lock */
    int lock_fd;        /* -1 if the mapping holds the lock */
    int write_fd;       /* -1 until first used */
    dev_t device;
    ino_t inode;
};

/* Describes the calling process, with a fresh nonce from getrandom. Never fails: a number that
 * cannot be read is 0, an unknown command is "?", and so is each of its characters that no
 * terminal may get. No malloc. */
void gps_owner_self(struct gps_owner *self);
/* Sets another command, which is cut to fit; characters that no terminal may get become "?". */
void gps_owner_name(struct gps_owner *owner, const char *name);

/* Creates, locks and writes procs/<self> under a temporary name and then renames it, so that it is
 * never visible without its lock. `arguments` are those of the command, or NULL. -ENOSPC: less than
 * GPS_STORE_RESERVE would remain. */
int gps_lease_take(const struct gps_store *store, const struct gps_owner *self,
                   const char *arguments, struct gps_lease *lease);

/* The same for a keeper: lock_fd holds the lock, so that the lock outlasts the process in one that
 * shares the table of descriptors, or that gets the descriptor. */
int gps_lease_take_shared(const struct gps_store *store, const struct gps_owner *self,
                          struct gps_lease *lease);
/* The lease of another process, which has passed its lock_fd on. It takes the descriptor over. */
int gps_lease_take_over(const struct gps_store *store, const struct gps_owner *self, int lock_fd,
                        struct gps_lease *lease);

/* A mapping of one byte that keeps the open file description of fd, and so its lock, without a
 * descriptor, in this process alone; MAP_FAILED. It holds a lock only where `hold` of a lease is a
 * mapping, too. */
void *gps_lease_map(int fd);

/* False: the file was removed or replaced, perhaps with the whole directory. Other processes do not
 * see slots that are written to it. Any thread. */
bool gps_lease_is_there(const struct gps_lease *lease);

/* Removes the file at the end of the process, and its order files (orders.h). Other threads may
 * still write to it; the kernel drops the lock. */
void gps_lease_withdraw(const struct gps_lease *lease);
/* Removes the file and releases the lock of a process that goes on without a lease. */
void gps_lease_drop(struct gps_lease *lease);

/* Closes the inherited descriptors in a forked child, and leaves the parent's file and lock alone.
 * Not for a vfork or CLONE_VM child, which shares the parent's struct. */
void gps_lease_forget(struct gps_lease *lease);

/* Writes slot `index` with one pwrite. The slot is sealed, or all zero to free it. -EINVAL: the
 * index is GPS_SLOTS_MAX or more. -ENOENT: the file was removed or replaced. */
int gps_lease_write(struct gps_lease *lease, unsigned index, const struct gps_slot *slot);

/* Sets gps_proc_header.untold, in place: also where the file system is full. Errors as above, and
 * -EBADMSG: the header is damaged. */
int gps_lease_set_untold(struct gps_lease *lease);
