#include "thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stack/module.h"
#include "util/clock.h"
#include "util/linker.h"
#include "util/procfs.h"
#include "util/program_signals.h"

#define LOOK 100000 /* us */
enum { OURS = 512 << 10 };

/* The key's destructor runs when the main thread ends by pthread_exit. Key and state lie in a page
 * that the linker has already written to. */
static pthread_key_t main_key __attribute__((section(".data")));

static struct {
    _Atomic unsigned ours, changes; /* threads of ours, and how often their number has changed */
    _Atomic bool keyed, left;       /* left: the main thread has ended */
    _Atomic bool watched;           /* a thread watches whether only ours are left */
    sigset_t signals;               /* the main thread's mask, when it ended */
    _Atomic int process; /* the process that started them; 0: none, as in a forked child */
} state __attribute__((section(".data")));

/* Sums up thread-local memory, which may all lie on a thread's stack: the linker does not tell. */
static int add_thread_local(struct dl_phdr_info *info, size_t size, void *arg) {
    size_t *sum = arg;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* 0: the size that the program's own threads have. */
static int thread_create(size_t stack, void *(*fn)(void *arg), void *arg) {
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

/* --- when only threads of ours are left --- */

/* A thread of ours that ends is counted until then, and one that begins is not counted yet: there
 * are never fewer of them than `ours` says, unless that has changed. */
static bool are_ours_alone(void) {
    struct gps_procfs_stat now;
    const unsigned changes = state.changes, ours = state.ours;
    return gps_procfs_stat_self(&now) == 0 && now.state == 'Z' && now.threads == ours + 1 &&
           state.changes == changes;
}

static void thread_count_change(unsigned change) {
    state.ours += change;
    state.changes++;
}

static void *end_at_last(void *unused) {
    prctl(PR_SET_NAME, "gpushare-last");
    thread_count_change(1);
    while (!are_ours_alone())
        usleep(LOOK);
    sigprocmask(SIG_SETMASK, &state.signals, NULL);
    exit(0);
    return unused;
}

/* The program's exit handlers run in the watching thread, so its stack is of the program's size. */
static void watch_for_end(void) {
    if (state.ours && !atomic_exchange(&state.watched, true) &&
        thread_create(0, end_at_last, NULL) != 0)
        state.watched = false; /* the next thread of ours tries again */
}

static void on_main_end(void *unused) {
    const pid_t process = getpid();
    (void)unused;
    if (process != (int)syscall(SYS_gettid) || (state.process && process != state.process))
        return;
    gps_program_signals_block(&state.signals);
    state.left = true;
    watch_for_end();
    sigprocmask(SIG_SETMASK, &state.signals, NULL);
}

void gps_thread_note_main(void) {
    /* Not constant: they lie in the page of the state, too. */
    static char create_name[] = "pthread_key_create", set_name[] = "pthread_setspecific";
    __typeof__(&pthread_key_create) create = GPS_LATE_BY(pthread_key_create, create_name);
    __typeof__(&pthread_setspecific) set = GPS_LATE_BY(pthread_setspecific, set_name);
    if (!state.keyed)
        state.keyed = create && set && create(&main_key, on_main_end) == 0;
    if (state.keyed)
        set(main_key, &state);
}

void gps_thread_reset(void) {
    const bool keyed = state.keyed; /* keys survive a fork */
    memset((void *)&state, 0, sizeof(state));
    state.keyed = keyed;
    state.process = getpid(); /* called by the first of the child's threads */
}

/* --- threads of ours --- */

struct task {
    void *(*fn)(void *arg);
    void *arg;
};

static void *thread_task_run(void *given) {
    const struct task task = *(struct task *)given;
    free(given);
    thread_count_change(1);
    if (state.left)
        watch_for_end();
    task.fn(task.arg);
    thread_count_change(-1u);
    return NULL;
}

/* Thread-local memory of the program's libraries is taken from each thread's stack, so its size is
 * added to ours. A thread with too little stack starts, and fails in the middle of its work. */
bool gps_thread_start(void *(*fn)(void *arg), void *arg) {
    size_t extra = 0;
    gps_linker_each(add_thread_local, &extra);
    const size_t stacks[] = {OURS + extra, 4 * OURS + extra, 16 * OURS + extra, 0};
    int code = EINVAL;
    struct task *task = malloc(sizeof(*task));
    if (!task)
        return false;
    *task = (struct task){fn, arg};
    state.process = getpid();
    for (size_t i = 0; code == EINVAL && i < sizeof(stacks) / sizeof(stacks[0]); i++)
        code = thread_create(stacks[i], thread_task_run, task);
    if (code != 0)
        free(task);
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

bool gps_thread_await(const _Atomic bool *busy, uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    while (atomic_load(busy) && gps_clock_monotonic() < until)
        usleep(1000);
    return !atomic_load(busy);
}

bool gps_thread_is_dead(int thread) {
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}
