#include "pending_signal.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

void gps_signal_discard(int number) {
    const struct timespec now = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
        continue;
}
