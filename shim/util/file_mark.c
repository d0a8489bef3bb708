#include "file_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FIRST = 34, LAST = 64 }; /* real-time signals that libc leaves to programs */

/* fcntl, which keeps errno. */
static int control(int descriptor, int command, int argument) {
    const int error = errno;
    const int answer = fcntl(descriptor, command, argument);
    errno = error;
    return answer;
}

int gps_file_mark(int descriptor, uint64_t number) {
    const int had = control(descriptor, F_GETSIG, 0);
    const int mark = FIRST + (int)((number * 0x9e3779b97f4a7c15u >> 32) % (LAST - FIRST + 1));
    if (had != 0)
        return had < 0 ? 0 : had;
    return control(descriptor, F_SETSIG, mark) < 0 ? 0 : mark;
}

void gps_file_claim(int descriptor) {
    if (control(descriptor, F_GETOWN, 0) == 0)
        control(descriptor, F_SETOWN, (int)getpid());
}

uint32_t gps_file_claimant(int descriptor) {
    const int owner = control(descriptor, F_GETOWN, 0);
    return owner > 0 ? (uint32_t)owner : 0;
}

bool gps_file_has_mark(int descriptor, int mark) {
    return mark > 0 && control(descriptor, F_GETSIG, 0) == mark;
}
