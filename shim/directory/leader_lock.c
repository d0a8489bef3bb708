#include "leader_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "gpushare/keeper.h"
#include "util/clock.h"

int gps_leader_lock_take(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    const int lock = gps_file_open_locked(path, O_CREAT, 0, 0);
    if (lock >= 0)
        (void)futimens(lock, NULL);
    return lock;
}

uint64_t gps_leader_lock_since(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    struct stat info;
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    const int fd = gps_file_open_any(AT_FDCWD, path, O_RDWR);
    const bool taken = fd >= 0 && gps_file_locked(fd) == 1 && fstat(fd, &info) == 0;
    if (fd >= 0)
        close(fd);
    return taken ? (uint64_t)info.st_mtim.tv_sec * GPS_SECOND + (uint64_t)info.st_mtim.tv_nsec : 0;
}

bool gps_leader_lock_holds(const struct gps_store *store, int fd) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_KEEPER_LOCK, NULL, path);
    return gps_file_is_at(path, fd);
}

/* Removes, or counts, the socket and the lock file, in this order. */
static int clear(const struct gps_store *store, bool dry_run) {
    static const char *const names[] = {GPS_KEEPER_SOCKET, GPS_KEEPER_LOCK};
    char path[GPS_FILE_PATH];
    struct stat info;
    int count = 0;
    for (unsigned i = 0; i < 2; i++) {
        gps_file_path(store, names[i], NULL, path);
        count += (dry_run ? lstat(path, &info) : unlink(path)) == 0;
    }
    return count;
}

void gps_leader_lock_end(const struct gps_store *store, int fd) {
    clear(store, false);
    gps_file_close_locked(fd);
}

int gps_leader_lock_clear(const struct gps_store *store, bool dry_run) {
    int count = clear(store, true);
    if (count == 0)
        return 0;
    const int fd = gps_leader_lock_take(store);
    if (fd < 0)
        return fd == -EAGAIN ? 0 : fd;
    if (!dry_run)
        count = clear(store, false);
    gps_file_close_locked(fd);
    return count;
}
