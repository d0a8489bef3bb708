/* swap.c - see swap.h. */
#include "swap.h"

#include <pthread.h>
#include <time.h>

#include "process/driver_ops.h"
#include "streams.h"
#include "util/clock.h"

#define ATTEMPT  (GPS_SECOND / 50)
#define PATIENCE (10 * GPS_SECOND)

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

void gps_swap_lock(void) {
    pthread_mutex_lock(&looking);
}

void gps_swap_unlock(void) {
    pthread_mutex_unlock(&looking);
}

static bool wait_for_idle(uint64_t until) {
    const struct timespec breath = {.tv_nsec = 50000};
    bool idle;
    while (!(idle = gps_streams_idle()) && gps_clock_monotonic() < until)
        nanosleep(&breath, NULL);
    return idle;
}

bool gps_swap_begin(uint64_t patience) {
    const uint64_t until = gps_clock_monotonic() + patience;
    if (gps_streams_capturing() || !gps_gate_close(patience))
        return false;
    if (wait_for_idle(until) && gps_gate_hold())
        return true;
    gps_gate_open();
    return false;
}

/* No stream can be asked; a free of scrap memory waits for all of them. */
static bool begin_beside_capture(void) {
    if (!gps_gate_close(ATTEMPT))
        return false;
    if (gps_ops->synchronize() == GPS_OK && gps_gate_hold())
        return true;
    gps_gate_open();
    return false;
}

bool gps_swap_begin_surely(void) {
    const struct timespec breath = {.tv_nsec = 1000000};
    const uint64_t until = gps_clock_monotonic() + PATIENCE;
    bool begun;
    while (!(begun = gps_streams_capturing() ? begin_beside_capture() : gps_swap_begin(ATTEMPT)) &&
           gps_clock_monotonic() < until)
        nanosleep(&breath, NULL);
    return begun;
}

void gps_swap_end(void) {
    gps_gate_open();
}

void gps_swap_reset(void) {
    looking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
