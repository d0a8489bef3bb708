/*
 * crew.h - threads that help with one call, and are gone when it returns.
 *
 * They have small stacks and the signal mask of their caller, who works along. There are never more
 * of them than other cores; where none can be had the caller works alone. No state.
 */
#ifndef GPS_CREW_H
#define GPS_CREW_H

#include <pthread.h>
#include <stddef.h>

enum { GPS_CREW_MOST = 15 };

struct gps_crew {
    pthread_t threads[GPS_CREW_MOST];
    unsigned count;
};

/* Up to `wanted` threads that run fn(arg), once each. */
void gps_crew_start(struct gps_crew *crew, size_t wanted, void *(*fn)(void *arg), void *arg);
void gps_crew_join(struct gps_crew *crew);

#endif
