#include "region_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"

int gps_region_go_unlocked(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_UNLOCKED, NULL, path);
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static int lock_shared(int fd) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLK, &lock)) == 0 ? 0 : -errno;
}

/* Makes the lock outlast the descriptor. */
static void region_lock_keep(const struct gps_lease *lease, int fd, struct gps_region_lock *lock) {
    void *mapping = lease->hold == MAP_FAILED ? MAP_FAILED : gps_lease_map(fd);
    if (mapping == MAP_FAILED)
        lock->status = gps_region_go_unlocked(lease->store);
    else
        lock->mapping = mapping;
}

/* Reads the record again once it is locked. Its owner makes it FREED before it puts another file in
 * its place, so the record that is read is over, or locked. */
static int lock_and_read(const struct gps_lease *lease, int fd, const struct gps_id *id,
                         struct gps_region_record *record, const char **why,
                         struct gps_region_lock *lock) {
    const int status = gps_region_read_open(lease->store, fd, id, record, why);
    if (status == 0 && !record->locked)
        return status;
    if (lock_shared(fd) == 0)
        region_lock_keep(lease, fd, lock);
    else
        lock->status = gps_region_go_unlocked(lease->store);
    return gps_region_read_open(lease->store, fd, id, record, why);
}

int gps_region_lock_and_read(const struct gps_lease *lease, const struct gps_id *id,
                             struct gps_region_record *record, const char **why,
                             struct gps_region_lock *lock) {
    char path[GPS_FILE_PATH];
    *lock = (struct gps_region_lock){NULL, 0};
    gps_region_path(lease->store, id, "", path);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, NULL, NULL);
    if (fd < 0) {
        if (fd != -ENOENT)
            lock->status = gps_region_go_unlocked(lease->store);
        return gps_region_read(lease->store, id, record, why);
    }
    const int status = lock_and_read(lease, fd, id, record, why, lock);
    close(fd);
    return status;
}

void gps_region_unlock(void *mapping) {
    if (mapping)
        munmap(mapping, 1);
}

/* The locks are read before "unlocked": that is made before a lock that it replaces ends. */
bool gps_region_may_be_locked(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    struct stat st;
    gps_region_path(store, id, "", path);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, NULL, NULL);
    if (fd < 0)
        return true;
    const bool locked = gps_file_locked(fd) != 0;
    close(fd);
    gps_file_path(store, GPS_UNLOCKED, NULL, path);
    return locked || lstat(path, &st) == 0 || errno != ENOENT;
}
