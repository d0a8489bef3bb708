/* high_descriptor.c - see high_descriptor.h. */
#include "high_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Other threads take numbers meanwhile: so many must be free from the chosen one on. */
enum { FREE_ABOVE = 4 };

static _Atomic int known_size; /* of the table, which only grows; 0: not read */

/* FDSize in /proc/self/status; 0 where that cannot be read. */
static int read_size(void) {
    char text[2048];
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "\nFDSize:");
    return line ? atoi(line + sizeof("\nFDSize:")) : 0;
}

static int table_size(void) {
    struct rlimit limit;
    int size = atomic_load(&known_size);
    if (!size)
        atomic_store(&known_size, size = read_size());
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)size
               ? (int)limit.rlim_cur
               : size;
}

static int is_free(int fd) {
    return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

int gps_descriptor_move_high(int fd) {
    const int size = table_size();
    int low = size, count = 0;
    while (count < FREE_ABOVE && low > size / 4 * 3 && low > fd + 1)
        count += is_free(--low);
    const int high = count == FREE_ABOVE ? fcntl(fd, F_DUPFD_CLOEXEC, low) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

void gps_descriptor_reset(void) {
    atomic_store(&known_size, 0);
}
