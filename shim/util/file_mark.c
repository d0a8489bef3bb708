#include "file_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FIRST = 34, LAST = 64 }; /* real-time signals that libc leaves to programs */

int gps_file_mark(int descriptor, uint64_t number) {
    const int error = errno;
    int mark = fcntl(descriptor, F_GETSIG);
    if (mark == 0) {
        mark = FIRST + (int)((number * 0x9e3779b97f4a7c15u >> 32) % (LAST - FIRST + 1));
        if (fcntl(descriptor, F_SETSIG, mark) < 0)
            mark = 0;
    }
    errno = error;
    return mark < 0 ? 0 : mark;
}

void gps_file_claim(int descriptor) {
    const int error = errno;
    if (fcntl(descriptor, F_GETOWN) == 0)
        fcntl(descriptor, F_SETOWN, (int)getpid());
    errno = error;
}

uint32_t gps_file_claimant(int descriptor) {
    const int error = errno;
    const int owner = fcntl(descriptor, F_GETOWN);
    errno = error;
    return owner > 0 ? (uint32_t)owner : 0;
}

bool gps_file_has_mark(int descriptor, int mark) {
    const int error = errno;
    const int now = fcntl(descriptor, F_GETSIG);
    errno = error;
    return mark > 0 && now == mark;
}
