/* swap.c - see swap.h. */
#include "swap.h"

#include <pthread.h>
#include <time.h>

#include "driver/driver_ops.h"
#include "streams.h"
#include "threads/thread.h"
#include "util/clock.h"

#define ATTEMPT (GPS_SECOND / 50)
enum { MOST_PATIENT = 7 /* attempts; then each lasts 2.6 s */ };

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

void gps_swap_lock(void) {
    pthread_mutex_lock(&looking);
}

void gps_swap_unlock(void) {
    pthread_mutex_unlock(&looking);
}

void gps_swap_await(uint64_t patience) {
    gps_thread_await(&looking, patience);
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
    if (gps_streams_capturing() || !gps_gate_close(patience, false))
        return false;
    if (wait_for_idle(until) && gps_gate_hold())
        return true;
    gps_gate_open();
    return false;
}

/* Beside a capture no stream can be asked, nor can those that are not known; a free of scrap memory
 * waits for all of them. */
static bool becomes_idle(uint64_t until) {
    return gps_streams_capturing() || !gps_streams_known() ? gps_ops->synchronize() == GPS_OK
                                                           : wait_for_idle(until);
}

bool gps_swap_begin_surely(unsigned attempt) {
    const uint64_t patience = ATTEMPT << (attempt < MOST_PATIENT ? attempt : MOST_PATIENT);
    const uint64_t until = gps_clock_monotonic() + patience;
    const struct timespec breath = {.tv_nsec = 1000000}; /* for those who wait at the gate */
    if (!gps_gate_close(patience, true))
        return false;
    if (becomes_idle(until))
        return true;
    gps_gate_open();
    nanosleep(&breath, NULL);
    return false;
}

void gps_swap_end(void) {
    gps_gate_open();
}

void gps_swap_reset(void) {
    looking = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
