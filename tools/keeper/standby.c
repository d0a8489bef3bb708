/*
 * standby.c - a second process that has all that the keeper has, and serves when it is killed.
 *
 * It shares the keeper's table of descriptors (CLONE_FILES). So listener, lock, lease and every
 * descriptor of memory stay open until both have died. The list of regions lies in shared memory
 * (region_list.h). Clients notice only connections that end without a reply, and ask again. The
 * stand-by sleeps until the kernel signals that its parent died. No process ever waits for it.
 */
#include "keeper_state.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cli/tool.h"
#include "directory/orphans.h"
#include "util/clock.h"

#define NAME  "keeper-stand-by" /* as ps shows it */
#define EVERY (GPS_SECOND / 10) /* between starts, if a stand-by dies at once or does not start */

void standby_signals(sigset_t *signals) {
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGCHLD);
}

/* --- the stand-by --- */

/* Waits until its parent has died. A signal that tells the stand-by to end is for both. */
static void stand_by(struct keeper *keeper, pid_t parent) {
    char name[16] = "";
    sigset_t signals;
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, NAME);
    prctl(PR_SET_PDEATHSIG, SIGCHLD);
    standby_signals(&signals);
    while (getppid() == parent) {
        const int signal = sigwaitinfo(&signals, NULL);
        if (signal != SIGTERM && signal != SIGINT && signal != SIGHUP)
            continue;
        keeper->told = true;
        if (getppid() == parent)
            kill(parent, SIGTERM);
    }
    prctl(PR_SET_PDEATHSIG, 0);
    prctl(PR_SET_NAME, name);
}

static int by_number(const void *left, const void *right) {
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* The descriptors to keep, sorted; -1 stands for none. NULL: no memory. */
static int *list_descriptors(const struct keeper *keeper, size_t *count) {
    const struct region_table *table = keeper->regions.table;
    const size_t reached = atomic_load(&table->reached);
    const int own[] = {2,
                       keeper->lock,
                       keeper->listener,
                       keeper->signals,
                       keeper->changes,
                       keeper->lease.lock_fd,
                       keeper->lease.write_fd};
    int *list = malloc(sizeof(own) + 2 * reached * sizeof(*list));
    *count = 0;
    for (size_t i = 0; list && i < sizeof(own) / sizeof(*own); i++)
        list[(*count)++] = own[i];
    for (size_t i = 0; list && i < reached; i++)
        if (atomic_load(&table->regions[i].stage) != KEEPER_REGION_FREE) {
            list[(*count)++] = table->regions[i].descriptor;
            list[(*count)++] = table->regions[i].copy;
        }
    if (list)
        qsort(list, *count, sizeof(*list), by_number);
    return list;
}

static void close_between(int first, int last) {
    if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0u) == 0)
        return;
    const long all = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd <= last && fd < all; fd++)
        close(fd);
}

/* Closes the dead keeper's files of the moment: connections, and descriptors that it received. */
static void close_others(const struct keeper *keeper) {
    size_t count;
    int *list = list_descriptors(keeper, &count);
    for (size_t i = 0; list && i < count; i++)
        if (list[i] >= 2)
            close_between(list[i] + 1, i + 1 < count ? list[i + 1] - 1 : INT32_MAX);
    free(list);
}

static void standby_take_over(struct keeper *keeper) {
    keeper->now = keeper->idle_since = gps_clock_monotonic();
    keeper->connection_count = keeper->given_count = 0;
    keeper->accept_after = keeper->sweep_at = keeper->not_before = 0;
    keeper->metrics.writer = 0;
    region_list_recover(&keeper->regions);
    close_others(keeper);
    gps_temps_remove(&keeper->store, &keeper->regions.self);
}

/* --- the keeper --- */

/* As fork, but both processes share the table of descriptors. */
static pid_t standby_fork(void) {
    return (pid_t)syscall(SYS_clone, (unsigned long)(CLONE_FILES | SIGCHLD), NULL, NULL, NULL,
                          NULL);
}

static bool standby_is_needed(struct keeper *keeper) {
    if (keeper->standby > 0 && waitpid(keeper->standby, NULL, WNOHANG) != 0)
        keeper->standby = 0;
    return keeper->standby == 0 && standby_due(keeper) <= gps_clock_monotonic();
}

uint64_t standby_due(const struct keeper *keeper) {
    if (keeper->standby > 0 || keeper->ending)
        return KEEPER_NEVER;
    return keeper->standby_since == 0 ? 0 : keeper->standby_since + EVERY;
}

/* A stand-by that serves from now on first starts a stand-by of its own. */
void standby_turn(struct keeper *keeper) {
    bool served = true;
    if (!standby_is_needed(keeper))
        return;
    do {
        const pid_t self = getpid();
        keeper->standby_since = gps_clock_monotonic();
        keeper->standby = standby_fork();
        if (keeper->standby != 0)
            break;
        stand_by(keeper, self);
        if (!incumbent_is_ours(keeper))
            _exit(TOOL_OK);
        served = false;
    } while (!keeper->ending);
    if (keeper->standby < 0)
        keeper->standby = 0; /* it is tried again soon */
    if (!served)
        standby_take_over(keeper);
    incumbent_publish(keeper);
}

void standby_end(struct keeper *keeper) {
    if (keeper->standby <= 0)
        return;
    kill(keeper->standby, SIGKILL);
    waitpid(keeper->standby, NULL, 0);
    keeper->standby = 0;
}
