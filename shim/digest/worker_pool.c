#include "worker_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "threads/thread.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/processor.h"

enum { MOST = 15, POLL = 50000 /* ns: about the cost of a sleep and a wake-up */ };

static struct {
    GPS_LOCK(GPS_RANK_POOL) lock;
    pthread_cond_t called, done;
    struct gps_pool *calls;  /* the calls that still want threads */
    size_t threads, waiting; /* all threads, and those of them that are idle */
} state = {.lock.mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
           .called = PTHREAD_COND_INITIALIZER,
           .done = PTHREAD_COND_INITIALIZER};

static size_t at_most(size_t wanted) {
    cpu_set_t allowed;
    const size_t cores =
        sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (size_t)CPU_COUNT(&allowed) : 1;
    const size_t most = cores <= MOST ? cores - 1 : MOST;
    return wanted < most ? wanted : most;
}

static void pool_withdraw(struct gps_pool *pool) {
    for (struct gps_pool **at = &state.calls; *at; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            return;
        }
}

static void pool_wake(const struct gps_pool *pool) {
    for (size_t i = 0; i < 2 && i < pool->wanted && i < state.waiting; i++)
        pthread_cond_signal(&state.called);
}

/* Called with the lock, which it releases while it works. A caller that polls may free the pool as
 * soon as `working` is 0: the release here pairs with the acquire in poll_until_done. */
static void pool_help(struct gps_pool *pool) {
    pool->working++;
    if (--pool->wanted)
        pool_wake(pool);
    else
        pool_withdraw(pool);
    gps_lock_give(&state.lock);
    pool->work(pool->arg);
    gps_lock_take(&state.lock);
    if (__atomic_sub_fetch(&pool->working, 1, __ATOMIC_RELEASE) == 0)
        pthread_cond_broadcast(&state.done);
}

/* False: there was no call for a second, so the thread may end. */
static bool wait_for_call(void) {
    const struct timespec until = gps_clock_in(GPS_SECOND);
    int code = 0;
    state.waiting++;
    while (!state.calls && code == 0)
        code = gps_thread_wait(&state.called, &state.lock.mutex, &until);
    state.waiting--;
    return state.calls;
}

static void *worker_run(void *unused) {
    GPS_LOCKED(&state.lock);
    while (state.calls || wait_for_call())
        pool_help(state.calls);
    state.threads--;
    return unused;
}

void gps_worker_pool_call(struct gps_pool *pool, size_t wanted) {
    pool->working = 0;
    pool->wanted = wanted = at_most(wanted);
    if (!wanted)
        return;
    GPS_LOCKED(&state.lock);
    pool->next = state.calls;
    state.calls = pool;
    pool_wake(pool); /* each thread that wakes then wakes others */
    for (size_t coming = state.waiting; coming < wanted && state.threads < MOST; coming++) {
        if (!gps_thread_start(worker_run, NULL))
            break;
        state.threads++;
    }
}

static void withdraw_rest(struct gps_pool *pool) {
    GPS_LOCKED(&state.lock);
    if (pool->wanted)
        pool_withdraw(pool);
    pool->wanted = 0;
}

/* False: a thread is still at work. */
static bool poll_until_done(const struct gps_pool *pool) {
    const uint64_t until = gps_clock_monotonic() + POLL;
    while (__atomic_load_n(&pool->working, __ATOMIC_ACQUIRE))
        if (gps_clock_monotonic() < until)
            gps_processor_pause();
        else
            return false;
    return true;
}

void gps_worker_pool_join(struct gps_pool *pool) {
    withdraw_rest(pool);
    if (poll_until_done(pool))
        return;
    GPS_LOCKED(&state.lock);
    while (pool->working)
        pthread_cond_wait(&state.done, &state.lock.mutex);
}

void gps_worker_pool_reset(void) {
    memset(&state, 0, sizeof(state)); /* as the initialisers of the conditions do */
    state.lock.mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
}
