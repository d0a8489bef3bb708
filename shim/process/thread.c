/* thread.c - see thread.h. */
#include "thread.h"

#include <pthread.h>
#include <stddef.h>

#define STACK (512u << 10) /* what the program's libraries keep in each thread comes out of it */

bool gps_thread_start(void *(*fn)(void *arg), void *arg) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    const bool started = pthread_create(&thread, &attributes, fn, arg) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}
