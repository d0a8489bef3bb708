#include "dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "file.h"

int gps_dir_open(struct gps_dir *dir, const struct gps_store *store, const char *directory) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, directory, NULL, path);
    dir->at = 0;
    dir->end = 0;
    dir->fd = gps_file_open_any(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    return dir->fd < 0 ? dir->fd : 0;
}

const char *gps_dir_next(struct gps_dir *dir, int *status) {
    if (dir->at == dir->end) {
        ssize_t n = getdents64(dir->fd, dir->buffer, sizeof(dir->buffer));
        if (n <= 0) {
            *status = n < 0 ? -errno : 0;
            return NULL;
        }
        dir->at = 0;
        dir->end = (size_t)n;
    }
    const struct dirent64 *entry = (const struct dirent64 *)(const void *)(dir->buffer + dir->at);
    dir->at += entry->d_reclen;
    return entry->d_name;
}

void gps_dir_close(struct gps_dir *dir) {
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
}
