/* mistakes.c - see mistakes.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "mistakes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

static uint64_t sum_of(const struct gps_mistake *mistake) {
    return XXH3_64bits(mistake, offsetof(struct gps_mistake, checksum));
}

static int open_file(const struct gps_store *store, int flags) {
    char path[GPS_FILE_PATH];
    struct stat st;
    gps_file_path(store, GPS_MISTAKES, NULL, path);
    int fd = gps_file_open(AT_FDCWD, path, flags, &st, NULL);
    if (fd == -ENOENT && flags & O_APPEND) {
        fd = gps_file_create(AT_FDCWD, path);
        if (fd >= 0)
            close(fd);
        fd = gps_file_open(AT_FDCWD, path, flags, &st, NULL);
    }
    return fd;
}

/* One write: rows of several processes do not mix. What the directory has no room for is taken
 * back, or the rows behind it could not be read. */
int gps_mistakes_add(const struct gps_store *store, struct gps_mistake *mistake) {
    int fd = open_file(store, O_WRONLY | O_APPEND);
    if (fd < 0)
        return fd;
    mistake->checksum = sum_of(mistake);
    const ssize_t written = write(fd, mistake, sizeof(*mistake));
    int status = written == (ssize_t)sizeof(*mistake) ? 0 : written < 0 ? -errno : -ENOSPC;
    if (status == -ENOSPC && written > 0 &&
        ftruncate(fd, lseek(fd, 0, SEEK_CUR) - (off_t)written) != 0)
        status = -errno;
    close(fd);
    return status;
}

int gps_mistakes_each(const struct gps_store *store, gps_mistake_fn *fn, void *arg) {
    struct gps_mistake mistake;
    ssize_t size;
    int fd = open_file(store, O_RDONLY);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    for (off_t at = 0;
         (size = gps_file_read(fd, &mistake, sizeof(mistake), at)) == (ssize_t)sizeof(mistake);
         at += size)
        if (mistake.checksum == sum_of(&mistake))
            fn(arg, &mistake);
    close(fd);
    return size < 0 ? (int)size : 0;
}

struct search {
    const struct gps_mistake *wanted;
    bool found;
};

static void compare(void *arg, const struct gps_mistake *mistake) {
    struct search *search = arg;
    search->found |= memcmp(mistake, search->wanted, offsetof(struct gps_mistake, checksum)) == 0;
}

bool gps_mistakes_has(const struct gps_store *store, const struct gps_mistake *mistake) {
    struct search search = {.wanted = mistake};
    gps_mistakes_each(store, compare, &search);
    return search.found;
}

int gps_mistakes_forget(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_MISTAKES, NULL, path);
    return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
