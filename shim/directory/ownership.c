#include "ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

/* FNV-1a, to 63 bits: which byte of the lock file stands for a name. Names that meet on one byte
 * only exclude each other a little longer. */
static off_t lock_byte(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return (off_t)(hash >> 1);
}

/* Whether the file that was locked is still the one that others would open: it is removed with the
 * last process. */
static bool still_there(const char *path, const struct stat *locked) {
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == locked->st_dev && now.st_ino == locked->st_ino;
}

static int lock(const struct gps_store *store, const char *name) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, "lock", NULL, path);
    struct stat st;
    int fd = gps_file_open(AT_FDCWD, path, O_RDWR, &st, NULL);
    if (fd == -ENOENT) {
        fd = gps_file_create(AT_FDCWD, path);
        if (fd == -EEXIST)
            fd = gps_file_open(AT_FDCWD, path, O_RDWR, &st, NULL);
        else if (fd >= 0)
            fstat(fd, &st);
    }
    if (fd < 0)
        return fd;
    int status = gps_file_lock(fd, lock_byte(name), 1);
    if (status == 0 && still_there(path, &st))
        return fd;
    close(fd);
    return status == 0 ? -EAGAIN : status;
}

/* Unlocks first: a child forked meanwhile has the description too, and would keep the lock. */
static void unlock(int fd) {
    gps_file_unlock(fd);
    close(fd);
}

void gps_ownership_end(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, "lock", NULL, path);
    struct stat st;
    int fd = gps_file_open(AT_FDCWD, path, O_RDWR, &st, NULL);
    if (fd < 0)
        return;
    if (gps_file_lock(fd, 0, 0) == 0 && still_there(path, &st))
        unlink(path);
    unlock(fd);
}

/* What is to become of an orphan: `temp` takes its place, or (NULL) nothing does. */
static int end_orphan(const struct gps_store *store, int at, const char *temp, const char *name,
                      gps_ownership_fn *judge) {
    int fd = lock(store, name);
    if (fd < 0)
        return fd;
    struct gps_owner holder;
    int status = judge(store, at, name, &holder);
    if (status == GPS_OWNERSHIP_ORPHAN) {
        if (temp)
            status = gps_file_rename(at, temp, name);
        else
            status = unlinkat(at, name, 0) == 0 ? 0 : -errno;
        status = status == 0 ? 1 : status;
    } else if (status > 0) {
        status = 0;
    }
    unlock(fd);
    return status;
}

int gps_ownership_clear(const struct gps_store *store, int at, const char *name,
                        gps_ownership_fn *judge) {
    int status = end_orphan(store, at, NULL, name, judge);
    return status == -ENOENT ? 0 : status;
}

int gps_ownership_succeed(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge) {
    return end_orphan(store, at, temp, name, judge);
}
