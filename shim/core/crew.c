/* crew.c - see crew.h. */
#include "crew.h"

#include <sched.h>

#define STACK                                                                                      \
    (512u << 10) /* thread-local storage of the program's libraries comes out of it, too */

static size_t at_most(size_t wanted) {
    cpu_set_t allowed;
    const size_t cores =
        sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    const size_t most = cores <= GPS_CREW_MOST ? cores - 1 : GPS_CREW_MOST;
    return wanted < most ? wanted : most;
}

void gps_crew_start(struct gps_crew *crew, size_t wanted, void *(*fn)(void *arg), void *arg) {
    pthread_attr_t attributes;
    crew->count = 0;
    if (!wanted || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    wanted = at_most(wanted);
    while (crew->count < wanted &&
           pthread_create(&crew->threads[crew->count], &attributes, fn, arg) == 0)
        crew->count++;
    pthread_attr_destroy(&attributes);
}

void gps_crew_join(struct gps_crew *crew) {
    while (crew->count)
        pthread_join(crew->threads[--crew->count], NULL);
}
