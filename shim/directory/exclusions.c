#define XXH_INLINE_ALL
#include <xxhash.h>

#include "exclusions.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

static uint64_t exclusion_sum(const struct gps_exclusion *exclusion) {
    return XXH3_64bits(exclusion, offsetof(struct gps_exclusion, checksum));
}

static int open_file(const struct gps_store *store, int flags) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_EXCLUSIONS, NULL, path);
    return gps_file_open(AT_FDCWD, path, flags, NULL, NULL);
}

/* A row is written with one write, so rows of several processes do not mix. A row for which the
 * file system has too little room is cut off again, because later rows would be misaligned. */
int gps_exclusions_add(const struct gps_store *store, struct gps_exclusion *exclusion) {
    int fd = open_file(store, O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0)
        return fd;
    exclusion->checksum = exclusion_sum(exclusion);
    const ssize_t written = write(fd, exclusion, sizeof(*exclusion));
    int status = written == (ssize_t)sizeof(*exclusion) ? 0 : written < 0 ? -errno : -ENOSPC;
    if (status == -ENOSPC && written > 0 &&
        ftruncate(fd, lseek(fd, 0, SEEK_CUR) - (off_t)written) != 0)
        status = -errno;
    close(fd);
    return status;
}

int gps_exclusions_each(const struct gps_store *store, gps_exclusion_fn *fn, void *arg) {
    struct gps_exclusion exclusion;
    ssize_t size;
    int fd = open_file(store, O_RDONLY);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    for (off_t at = 0; (size = gps_file_read(fd, &exclusion, sizeof(exclusion), at)) ==
                       (ssize_t)sizeof(exclusion);
         at += size)
        if (exclusion.checksum == exclusion_sum(&exclusion))
            fn(arg, &exclusion);
    close(fd);
    return size < 0 ? (int)size : 0;
}

bool gps_exclusion_is_same(const struct gps_exclusion *a, const struct gps_exclusion *b) {
    return memcmp(a, b, offsetof(struct gps_exclusion, times)) == 0;
}

uint64_t gps_exclusion_times_after(uint64_t before, const struct gps_exclusion *row) {
    return row->times == GPS_FORGOTTEN || row->times > before ? row->times : before;
}

struct search {
    const struct gps_exclusion *wanted;
    uint64_t times;
};

static void exclusion_compare(void *arg, const struct gps_exclusion *exclusion) {
    struct search *search = arg;
    if (gps_exclusion_is_same(exclusion, search->wanted))
        search->times = gps_exclusion_times_after(search->times, exclusion);
}

uint64_t gps_exclusions_times(const struct gps_store *store,
                              const struct gps_exclusion *exclusion) {
    struct search search = {.wanted = exclusion};
    gps_exclusions_each(store, exclusion_compare, &search);
    return search.times;
}

int gps_exclusions_forget(const struct gps_store *store) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_EXCLUSIONS, NULL, path);
    return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
