/* region_lock.c - see region_lock.h. */
#include "region_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"

/* An owner that frees and exports again replaces the record, but not as often as this. */
#define LOCK_TRIES 8

static void path_of_unlocked(const struct gps_store *store, char path[GPS_FILE_PATH]) {
    gps_file_path(store, GPS_UNLOCKED, NULL, path);
}

int gps_region_go_unlocked(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    path_of_unlocked(store, path);
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* A descriptor with the lock, or -errno. */
static int open_shared(const char *path) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    const int fd = gps_file_open_any(AT_FDCWD, path, O_RDONLY);
    if (fd < 0 || TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLK, &lock)) == 0)
        return fd;
    const int status = -errno;
    close(fd);
    return status == -ENOENT ? -ENOLCK : status;
}

/* Makes the lock outlast the descriptor, which it closes. "unlocked" is there before the lock ends,
 * so the owner sees one or the other. */
static void keep(const struct gps_lease *lease, int fd, struct gps_region_lock *lock) {
    void *mapping = lease->hold == MAP_FAILED ? MAP_FAILED : gps_lease_map(fd);
    if (mapping == MAP_FAILED)
        lock->status = gps_region_go_unlocked(lease->store);
    else
        lock->mapping = mapping;
    close(fd);
}

/* The record is read while it is locked, so it is the locked one if it still has its path. */
static int try(const struct gps_lease *lease, const struct gps_id *id, const char *path,
               struct gps_region_record *record, const char **why, struct gps_region_lock *lock) {
    const int fd = open_shared(path);
    if (fd < 0 && fd != -ENOENT)
        lock->status = gps_region_go_unlocked(lease->store);
    const int status = gps_region_read(lease->store, id, record, why);
    if (fd < 0)
        return fd == -ENOENT && status != -ENOENT ? -EAGAIN : status;
    if (gps_file_is_at(path, fd)) {
        keep(lease, fd, lock);
        return status;
    }
    close(fd);
    return -EAGAIN;
}

int gps_region_lock_and_read(const struct gps_lease *lease, const struct gps_id *id,
                             struct gps_region_record *record, const char **why,
                             struct gps_region_lock *lock) {
    char path[GPS_FILE_PATH];
    int status = -EAGAIN;
    *lock = (struct gps_region_lock){NULL, 0};
    gps_region_path(lease->store, id, "", path);
    for (int i = 0; i < LOCK_TRIES && status == -EAGAIN; i++)
        status = try(lease, id, path, record, why, lock);
    if (status != -EAGAIN)
        return status;
    lock->status = gps_region_go_unlocked(lease->store);
    return gps_region_read(lease->store, id, record, why);
}

void gps_region_unlock(void *mapping) {
    if (mapping)
        munmap(mapping, 1);
}

/* In this order: "unlocked" is made before a lock that it replaces ends. */
bool gps_region_may_be_locked(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    struct stat st;
    gps_region_path(store, id, "", path);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, &st, NULL);
    if (fd < 0)
        return true;
    const bool locked = gps_file_locked(fd) != 0;
    close(fd);
    path_of_unlocked(store, path);
    return locked || lstat(path, &st) == 0 || errno != ENOENT;
}
