#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"

/* Both lie in a page that the linker has already written to, as all data of the constructor. */
static struct gps_channel *channel __attribute__((section(".data")));
static char variable[] = GPS_CHANNEL_VARIABLE;
static size_t cells;

struct gps_channel *gps_channel(void) {
    return channel;
}

/* The number of cells of the file. -1: the file is none of ours, or could shrink. */
static ssize_t count_cells(int fd) {
    struct stat info;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &info) != 0 ||
        info.st_size < (off_t)sizeof(*channel))
        return -1;
    const size_t count = ((size_t)info.st_size - sizeof(*channel)) / GPS_CHANNEL_CELL;
    return count <= GPS_CHANNEL_CELLS ? (ssize_t)count : -1;
}

/* Maps the channel, but not into core dumps of the program. */
static void channel_map(int fd) {
    const ssize_t count = count_cells(fd);
    if (count < 0)
        return;
    const size_t size = sizeof(*channel) + (size_t)count * GPS_CHANNEL_CELL;
    struct gps_channel *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return;
    if (mapped->magic != GPS_CHANNEL_MAGIC) {
        munmap(mapped, size);
        return;
    }
    madvise(mapped, size, MADV_DONTDUMP);
    cells = (size_t)count;
    channel = mapped;
}

/* It shares a page with the constructor that calls it. */
__attribute__((section(".text.startup"))) void gps_channel_start(void) {
    const int error = errno;
    const char *path = channel ? NULL : secure_getenv(variable);
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd >= 0) {
        channel_map(fd);
        close(fd);
    }
    errno = error;
}

bool gps_channel_is_open(void) {
    return channel && channel->directory[0] != '\0' &&
           atomic_load(&channel->taken) < GPS_CHANNEL_CLOSED;
}

bool gps_channel_is_attended(void) {
    const uint64_t last = atomic_load(&channel->attended);
    return gps_clock_monotonic() < last + GPS_CHANNEL_STALE;
}

const char *gps_channel_name(const char *path) {
    const size_t length = strnlen(channel->directory, PATH_MAX - 1);
    return strncmp(path, channel->directory, length) == 0 && path[length] == '/' ? path + length + 1
                                                                                 : NULL;
}

bool gps_channel_put(const char *name, const char *line, size_t length) {
    const size_t before = strlen(name) + 1, size = before + length + 1;
    const size_t count = (size + GPS_CHANNEL_CELL - 1) / GPS_CHANNEL_CELL;
    uint64_t first = atomic_load(&channel->taken);
    do
        if (count >= GPS_CHANNEL_READ || first > cells || count > cells - first)
            return false;
    while (!atomic_compare_exchange_weak(&channel->taken, &first, first + count));
    char *to = channel->bytes + first * GPS_CHANNEL_CELL;
    memcpy(to, name, before);
    memcpy(to + before, line, length);
    to[size - 1] = '\0';
    atomic_store_explicit(&channel->begun[first], (uint16_t)count, memory_order_release);
    return true;
}
