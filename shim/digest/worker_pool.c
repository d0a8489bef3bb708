/* worker_pool.c - see worker_pool.h. */
#include "worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "process/thread.h"

enum { MOST = 15, LINGER = 1 /* s */ };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t called, done;
    struct gps_pool *calls;  /* that want somebody */
    size_t threads, waiting; /* of the threads: nothing to do */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .called = PTHREAD_COND_INITIALIZER,
           .done = PTHREAD_COND_INITIALIZER};

static size_t at_most(size_t wanted) {
    cpu_set_t allowed;
    const size_t cores =
        sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    const size_t most = cores <= MOST ? cores - 1 : MOST;
    return wanted < most ? wanted : most;
}

static void withdraw(struct gps_pool *pool) {
    for (struct gps_pool **at = &state.calls; *at; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            return;
        }
}

/* With the lock, which it lets go of meanwhile. */
static void help(struct gps_pool *pool) {
    pool->working++;
    if (--pool->wanted == 0)
        withdraw(pool);
    pthread_mutex_unlock(&state.lock);
    pool->work(pool->arg);
    pthread_mutex_lock(&state.lock);
    if (--pool->working == 0)
        pthread_cond_broadcast(&state.done);
}

/* False: nobody called for so long that the thread may end. */
static bool wait_for_call(void) {
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LINGER;
    state.waiting++;
    while (!state.calls && code == 0)
        code = gps_thread_wait(&state.called, &state.lock, &until);
    state.waiting--;
    return state.calls;
}

static void *run(void *unused) {
    pthread_mutex_lock(&state.lock);
    while (state.calls || wait_for_call())
        help(state.calls);
    state.threads--;
    pthread_mutex_unlock(&state.lock);
    return unused;
}

void gps_pool_call(struct gps_pool *pool, size_t wanted) {
    pool->working = 0;
    pool->wanted = wanted = at_most(wanted);
    if (!wanted)
        return;
    pthread_mutex_lock(&state.lock);
    pool->next = state.calls;
    state.calls = pool;
    pthread_cond_broadcast(&state.called); /* those that wait come by themselves */
    for (size_t coming = state.waiting; coming < wanted && state.threads < MOST; coming++) {
        if (!gps_thread_start(run, NULL))
            break;
        state.threads++;
    }
    pthread_mutex_unlock(&state.lock);
}

void gps_pool_join(struct gps_pool *pool) {
    pthread_mutex_lock(&state.lock);
    if (pool->wanted)
        withdraw(pool);
    pool->wanted = 0;
    while (pool->working)
        pthread_cond_wait(&state.done, &state.lock);
    pthread_mutex_unlock(&state.lock);
}

void gps_pool_reset(void) {
    memset(&state, 0, sizeof(state)); /* as the initialisers are */
}
