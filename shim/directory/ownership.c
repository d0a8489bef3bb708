#include "ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "file.h"

/* The byte of the lock file for a name: FNV-1a, cut to 63 bits. Names with the same byte only
 * exclude each other a little longer. */
static off_t lock_byte(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return (off_t)(hash >> 1);
}

void gps_ownership_end(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, "lock", NULL, path);
    int fd = gps_file_open_locked(path, 0, 0, 0);
    if (fd < 0)
        return;
    unlink(path);
    gps_file_close_locked(fd);
}

int gps_ownership_replace(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge) {
    char path[GPS_FILE_PATH];
    struct gps_owner holder;
    gps_file_path(store, "lock", NULL, path);
    int fd = gps_file_open_locked(path, O_CREAT, lock_byte(name), 1);
    if (fd < 0)
        return fd;
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
    gps_file_close_locked(fd);
    return status == -ENOENT ? 0 : status;
}

int gps_ownership_contest(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge, struct gps_owner *holder) {
    int status = judge(store, at, name, holder);
    if (status < 0 || status == GPS_OWNERSHIP_HELD)
        return status < 0 ? status : -EEXIST;
    status = gps_ownership_replace(store, at, temp, name, judge);
    if (status != -EAGAIN)
        return status;
    sched_yield();
    return 0;
}
