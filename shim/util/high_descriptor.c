/* high_descriptor.c - see high_descriptor.h. */
#include "high_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    TABLE_MIN = 64, /* entries: the kernel's NR_OPEN_DEFAULT, of 64-bit systems */
    FREE_ABOVE = 4, /* free numbers to find, because other threads take some meanwhile */
};

/* A lower bound of the size of the descriptor table, which doubles when it grows. FDSize in
 * /proc/self/status would be exact, but its first read takes 40 us. */
static int table_size(int fd) {
    struct rlimit limit;
    int size = TABLE_MIN;
    while (size <= fd)
        size *= 2;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)size
               ? (int)limit.rlim_cur
               : size;
}

static int is_free(int fd) {
    return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

int gps_descriptor_move_high(int fd) {
    const int size = table_size(fd);
    int low = size, count = 0;
    while (count < FREE_ABOVE && low > size / 4 * 3 && low > fd + 1)
        count += is_free(--low);
    const int high = count == FREE_ABOVE ? fcntl(fd, F_DUPFD_CLOEXEC, low) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
