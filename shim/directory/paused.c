/* paused.c - see paused.h. */
#include "paused.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "file.h"

static const char suffix[] = ".paused";

bool gps_paused_get(const struct gps_store *store, const struct gps_owner *owner) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, suffix, path);
    return access(path, F_OK) == 0;
}

int gps_paused_set(const struct gps_store *store, const struct gps_owner *owner, bool paused) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, suffix, path);
    if (!paused)
        return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
    const int fd = gps_file_create(AT_FDCWD, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -EEXIST ? 0 : fd;
}

bool gps_paused_parse(const char *name, struct gps_owner *owner) {
    return gps_file_owner(name, suffix, owner);
}
