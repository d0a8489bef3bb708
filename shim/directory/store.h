/*
 * store.h - the published directory <root>/<namespace>: its path and how it is opened.
 *
 * The modules of this room own every access to the directory. None of them keeps a descriptor open
 * (except a lease), maps a record or waits. Each function opens a file by its absolute path with
 * O_NOFOLLOW | O_CLOEXEC, checks it, works on it and closes it. This is safe because the
 * directories belong to the user and have mode 0700, which gps_store_init checks. Files that other
 * processes wrote are input: they are copied first and checked then.
 *
 * Functions return 0 or -errno and write their outputs only on success. A struct gps_store is
 * constant after gps_store_init and may be used from any thread. Nothing calls malloc. A write
 * beyond the limit on file sizes raises SIGXFSZ: the caller saves errno and blocks the signal.
 *
 * A process that is killed or stopped at any point leaves no damaged file, and no other process
 * waits for it. ownership.h explains how.
 */
#pragma once

#include <stdbool.h>

#include "record.h"
#include "util/text.h"

/* The space in bytes that publishing a record and taking a lease leave free on the file system. */
#define GPS_STORE_RESERVE (UINT64_C(1) << 20)

/* The longest root and namespace together. It is short because the path lies on small stacks. */
#define GPS_STORE_PATH 1024

struct gps_store {
    char path[GPS_STORE_PATH]; /* <root>/<namespace>, absolute */
    const char *records;       /* the directory of the records that region.h reads and writes */
};
#define GPS_REGIONS "regions"
#define GPS_AUDIT   "audit" /* records of events and places: see GPS_BACKING_EVENT */
#define GPS_FREED   "freed" /* records of freed regions: tombstones */

/* Points the store at root/name_space. With `create` it makes the missing directories from root
 * down with mode 0700, but not the parents of root. -EPERM: a directory belongs to another user or
 * is open to others (mode & 077). -ENOTDIR, -ELOOP: not a directory, or a symbolic link. -EINVAL:
 * root is not absolute, or the namespace is not a valid name (gps_name_valid). -ENAMETOOLONG.
 * -ENOENT: missing, without `create`. Otherwise the error of mkdir (-EROFS, -ENOSPC, ...). */
int gps_store_init(struct gps_store *store, const char *root, const char *name_space, bool create);

/* Adds what the error of gps_store_init means: "/x is open to others ...". */
void gps_store_trouble(struct gps_text *text, const char *root, const char *name_space, int status);

/* GPUSHARE_NAMESPACE, else "default". */
const char *gps_store_namespace(void);

/* The root: GPUSHARE_DIR, else gpushare-<euid> in NVIDIA_DRA_LOCAL_IPC_DIR (a Kubernetes driver
 * shares it among the pods of a claim), else in /dev/shm. True: GPUSHARE_DIR says so. */
bool gps_store_root(char *path, size_t size);
