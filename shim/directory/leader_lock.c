#include "leader_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "file.h"
#include "gpushare/keeper.h"

/* Whether the file that was locked is still the one that others would open. */
static bool still_there(const char *path, const struct stat *locked) {
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == locked->st_dev && now.st_ino == locked->st_ino;
}

static int open_lock(const char *path, struct stat *st) {
    int fd = gps_file_open(AT_FDCWD, path, O_RDWR, st, NULL);
    if (fd != -ENOENT)
        return fd;
    fd = gps_file_create(AT_FDCWD, path);
    if (fd == -EEXIST)
        return gps_file_open(AT_FDCWD, path, O_RDWR, st, NULL);
    if (fd >= 0)
        fstat(fd, st);
    return fd;
}

int gps_leader_lock_take(const struct gps_store *store, int *fd) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    struct stat st;
    int lock = open_lock(path, &st);
    if (lock < 0)
        return lock;
    int status = gps_file_lock(lock, 0, 0);
    if (status == 0 && !still_there(path, &st))
        status = -EAGAIN;
    if (status == 0)
        *fd = lock;
    else
        close(lock);
    return status;
}

bool gps_leader_lock_holds(const struct gps_store *store, int fd) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    struct stat st;
    return fstat(fd, &st) == 0 && still_there(path, &st);
}

static int remove_both(const struct gps_store *store) {
    static const char *const names[] = {GPS_KEEPER_SOCKET, GPS_KEEPER_LOCK}; /* the lock last */
    int removed = 0;
    char path[GPS_FILE_PATH];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        gps_file_path(store, names[i], NULL, path);
        removed += unlink(path) == 0;
    }
    return removed;
}

void gps_leader_lock_end(const struct gps_store *store, int fd) {
    remove_both(store);
    gps_file_unlock(fd);
    close(fd);
}

/* How many of the two there are. */
static int count_both(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_KEEPER_SOCKET, NULL, path);
    int count = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    return count + (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

int gps_leader_lock_clear(const struct gps_store *store, bool dry_run) {
    int count = count_both(store);
    if (count == 0)
        return 0;
    int fd;
    int status = gps_leader_lock_take(store, &fd);
    if (status != 0)
        return status == -EAGAIN ? 0 : status;
    if (!dry_run)
        count = remove_both(store);
    gps_file_unlock(fd);
    close(fd);
    return count;
}
