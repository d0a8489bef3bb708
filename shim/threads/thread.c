/* thread.c - see thread.h. */
#include "thread.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stack/module.h"
#include "util/clock.h"

enum { OURS = 512 << 10 };

/* The linker does not say how much of it lies on the stack: all that there is, at most. */
static int add_thread_local(struct dl_phdr_info *info, size_t size, void *arg) {
    size_t *sum = arg;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* 0: the size that the program's own threads have. */
static int start(size_t stack, void *(*fn)(void *arg), void *arg) {
    pthread_attr_t attributes;
    pthread_t thread;
    __typeof__(&pthread_create) create = GPS_LATE(pthread_create);
    __typeof__(&pthread_attr_setstacksize) set_size = GPS_LATE(pthread_attr_setstacksize);
    int code = create && set_size ? pthread_attr_init(&attributes) : ENOSYS;
    if (code != 0)
        return code;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack)
        set_size(&attributes, stack);
    code = create(&thread, &attributes, fn, arg);
    pthread_attr_destroy(&attributes);
    return code;
}

/* What the program's libraries keep in each thread comes out of its stack, so it comes on top of
 * what we need. A thread that has too little left starts, and fails in the middle of its work. */
bool gps_thread_start(void *(*fn)(void *arg), void *arg) {
    size_t extra = 0;
    dl_iterate_phdr(add_thread_local, &extra);
    const size_t stacks[] = {OURS + extra, 4 * OURS + extra, 16 * OURS + extra, 0};
    int code = EINVAL;
    for (size_t i = 0; code == EINVAL && i < sizeof(stacks) / sizeof(stacks[0]); i++)
        code = start(stacks[i], fn, arg);
    return code == 0;
}

static struct timespec on_wall_clock(const struct timespec *until) {
    const long second = 1000000000;
    struct timespec now, wall;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &wall);
    const long nanoseconds =
        wall.tv_nsec + until->tv_nsec - now.tv_nsec + second; /* not negative */
    return (struct timespec){wall.tv_sec + until->tv_sec - now.tv_sec - 1 + nanoseconds / second,
                             nanoseconds % second};
}

int gps_thread_wait_by_wall_clock(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until) {
    const struct timespec wall = on_wall_clock(until);
    return pthread_cond_timedwait(condition, lock, &wall);
}

int gps_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                    const struct timespec *until) {
    __typeof__(&pthread_cond_clockwait) wait = GPS_LATE(pthread_cond_clockwait);
    return wait ? wait(condition, lock, CLOCK_MONOTONIC, until)
                : gps_thread_wait_by_wall_clock(condition, lock, until);
}

void gps_thread_await(const _Atomic bool *busy, uint64_t timeout) {
    const struct timespec moment = {.tv_nsec = 1000000};
    const uint64_t until = gps_clock_monotonic() + timeout;
    while (atomic_load(busy) && gps_clock_monotonic() < until)
        nanosleep(&moment, NULL);
}

bool gps_thread_is_dead(int thread) {
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}
