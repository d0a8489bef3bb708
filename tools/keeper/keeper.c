/*
 * keeper.c - `gpushare keeper`: holds the descriptors of VMM regions, so that they outlive whoever
 * created them.
 *
 * Programs start one by themselves (--on-demand); it ends when there is nothing to keep.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/tool.h"
#include "config/config.h"
#include "directory/file.h"
#include "directory/leader_lock.h"
#include "directory/view.h"
#include "keeper_process.h"

#define DEBOUNCE      (GPS_SECOND / 50) /* changes come in flocks */
#define SWEEP_SHARE   20                /* at most one part in so many of the time is sweeping */
#define LONGEST_PAUSE (GPS_SECOND / 4)
#define SLOW          (30 * GPS_SECOND) /* between sweeps with nothing to keep */
#define DEMAND_IDLE   (2 * GPS_SECOND)

enum { OPTION_IDLE, OPTION_ON_DEMAND };
enum { FD_LISTENER, FD_SIGNALS, FD_CHANGES, FD_CONNECTIONS };

/* The loop: what it waits for besides connections. */
struct rounds {
    struct keeper keeper;
    int signals, changes; /* -1: no inotify to be had; the sweep once a second must do */
    uint64_t idle;        /* so long without anything to keep, then it ends */
    uint64_t idle_since;
    uint64_t not_before; /* the next sweep */
    unsigned others;     /* live processes, as of the last sweep */
    bool ending;
    bool evicted; /* what we keep is no longer there to be found */
};

void keeper_sweep_by(struct keeper *keeper, uint64_t when) {
    if (when < keeper->sweep_at)
        keeper->sweep_at = when;
}

/* --- waiting --- */

/* The kernel closes a dead process's file, and that shows, too. */
static int watch_processes(const struct gps_store *store) {
    const uint32_t what = IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_ONLYDIR;
    char path[GPS_FILE_PATH];
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    gps_file_path(store, "procs", NULL, path);
    if (fd >= 0 && inotify_add_watch(fd, path, what) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Whoever started us may have blocked or ignored any; one that is blocked is never ignored. */
static int take_signals(void) {
    sigset_t ours;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_SETMASK, &ours, NULL);
    return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_idle(const struct keeper *keeper) {
    return keeper->kept.count == 0 && keeper->connection_count == 0;
}

static uint64_t earliest(const struct rounds *rounds) {
    const struct keeper *keeper = &rounds->keeper;
    uint64_t when = keeper->sweep_at, expiry = connections_expiry(keeper);
    when = expiry < when ? expiry : when;
    if (keeper->accept_after > keeper->now && keeper->accept_after < when)
        when = keeper->accept_after;
    if (is_idle(keeper) && rounds->idle != KEEPER_NEVER && rounds->idle_since + rounds->idle < when)
        when = rounds->idle_since + rounds->idle;
    return when;
}

static int timeout(const struct rounds *rounds) {
    const uint64_t when = earliest(rounds), now = gps_clock_monotonic();
    if (when == KEEPER_NEVER)
        return -1;
    if (when <= now)
        return 0;
    return when - now < 1000 * GPS_SECOND ? (int)((when - now) / 1000000) + 1 : 1000000;
}

static void drain(int fd) {
    char bytes[4096];
    while (read(fd, bytes, sizeof(bytes)) > 0)
        continue;
}

/* --- a round --- */

static size_t fill(const struct rounds *rounds, struct pollfd *wait) {
    const struct keeper *keeper = &rounds->keeper;
    bool full = keeper->connection_count == CONNECTIONS_MAX || keeper->accept_after > keeper->now;
    wait[FD_LISTENER] = (struct pollfd){.fd = full ? -1 : keeper->listener, .events = POLLIN};
    wait[FD_SIGNALS] = (struct pollfd){.fd = rounds->signals, .events = POLLIN};
    wait[FD_CHANGES] = (struct pollfd){.fd = rounds->changes, .events = POLLIN};
    for (size_t i = 0; i < keeper->connection_count; i++)
        wait[FD_CONNECTIONS + i] =
            (struct pollfd){.fd = keeper->connections[i].fd, .events = POLLIN};
    return keeper->connection_count;
}

/* The last client first: serving one moves those behind it. */
static void answer(struct rounds *rounds, const struct pollfd *wait, size_t connections) {
    if (wait[FD_SIGNALS].revents != 0)
        rounds->ending = true;
    if (wait[FD_CHANGES].revents != 0) {
        drain(rounds->changes);
        keeper_sweep_by(&rounds->keeper, rounds->keeper.now + DEBOUNCE);
    }
    for (size_t i = connections; i-- > 0;)
        if (wait[FD_CONNECTIONS + i].revents != 0)
            connections_serve(&rounds->keeper, i);
    if (wait[FD_LISTENER].revents != 0)
        connections_accept(&rounds->keeper);
    connections_expire(&rounds->keeper);
}

/* The last process to leave tidies up; when only we are left, that is us. */
static void tidy(struct rounds *rounds, unsigned others) {
    struct gps_gc_counts counts;
    if (others == 0 && rounds->others != 0)
        gps_store_gc(&rounds->keeper.store, false, &counts);
    rounds->others = others;
}

static void sweep(struct rounds *rounds) {
    struct keeper *keeper = &rounds->keeper;
    uint64_t next = KEEPER_NEVER, begin = gps_clock_monotonic();
    unsigned others = rounds->others;
    if (keeper->sweep_at < rounds->not_before)
        keeper->sweep_at = rounds->not_before;
    if (begin < keeper->sweep_at)
        return;
    keeper->sweep_at = KEEPER_NEVER;
    rounds->evicted = !gps_leader_lock_holds(&keeper->store, keeper->lock);
    if (rounds->evicted)
        rounds->ending = true;
    if (rounds->ending)
        return;
    if (kept_regions_sweep(&keeper->kept, begin, &next, &others) == 0)
        tidy(rounds, others);
    uint64_t end = gps_clock_monotonic();
    uint64_t pause = (end - begin) * SWEEP_SHARE;
    rounds->not_before = end + (pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE);
    keeper_sweep_by(keeper, next);
    keeper_sweep_by(keeper, end + (keeper->kept.count > 0 ? GPS_SECOND : SLOW));
}

static void go_round(struct rounds *rounds) {
    static struct pollfd wait[FD_CONNECTIONS + CONNECTIONS_MAX];
    struct keeper *keeper = &rounds->keeper;
    size_t connections = fill(rounds, wait);
    int ready = poll(wait, FD_CONNECTIONS + connections, timeout(rounds));
    keeper->now = gps_clock_monotonic();
    if (ready >= 0)
        answer(rounds, wait, connections);
    sweep(rounds);
    if (keeper->kept.count > 0)
        rounds->idle_since = keeper->now;
    rounds->ending |= is_idle(keeper) && rounds->idle != KEEPER_NEVER &&
                      keeper->now - rounds->idle_since >= rounds->idle;
}

/* --- the verb --- */

static int refuse(const struct keeper *keeper, int error, const struct gps_owner *other) {
    if (error != -EEXIST)
        tool_error("cannot keep %s: %s", keeper->store.path,
                   error == -ENOSPC ? "no room is left there" : strerror(-error));
    else if (other->pid != 0)
        tool_error("%s has a keeper already: %s, pid %u", keeper->store.path, other->command,
                   other->pid);
    else
        tool_error("%s has a keeper already, which does not answer", keeper->store.path);
    return TOOL_FAILED;
}

static bool open_store(struct gps_store *store) {
    struct view_place place;
    view_place_get(&place);
    int error = gps_store_init(store, place.root, place.name_space, true);
    if (error != 0)
        tool_error("cannot use %s/%s: %s", place.root, place.name_space, view_store_trouble(error));
    return error == 0;
}

static int keep(struct rounds *rounds, bool on_demand) {
    struct keeper *keeper = &rounds->keeper;
    struct gps_owner other;
    rounds->signals = take_signals();
    int error = leadership_take(keeper, &other);
    if (error == -EEXIST && on_demand)
        return TOOL_OK;
    if (error != 0)
        return refuse(keeper, error, &other);
    rounds->changes = watch_processes(&keeper->store);
    rounds->idle_since = keeper->now = gps_clock_monotonic();
    rounds->others = 1;
    if (!on_demand) {
        printf("Keeping %s, pid %d.\n", keeper->store.path, (int)getpid());
        fflush(stdout);
    }
    sweep(rounds);
    while (!rounds->ending)
        go_round(rounds);
    if (rounds->evicted && !on_demand)
        tool_error("%s was removed, or replaced by another", keeper->store.path);
    if (rounds->evicted) /* nothing there is ours any more */
        return on_demand ? TOOL_OK : TOOL_FAILED;
    leadership_end(keeper);
    return TOOL_OK;
}

static int run_keeper(const struct tool_args *args) {
    static struct rounds rounds = {.idle = KEEPER_NEVER};
    const char *idle = args->values[OPTION_IDLE];
    bool on_demand = args->values[OPTION_ON_DEMAND] != NULL;
    if (on_demand)
        rounds.idle = DEMAND_IDLE;
    if (idle && !gps_parse_duration(idle, &rounds.idle)) {
        tool_error("--idle '%s' is not a time; allowed: 500ms, 30s, 2min ...", idle);
        return TOOL_USAGE;
    }
    return open_store(&rounds.keeper.store) ? keep(&rounds, on_demand) : TOOL_FAILED;
}

const struct tool_verb tool_verb_keeper = {
    .name = "keeper",
    .operands = "",
    .summary = "keep regions of backing = vmm, in the foreground",
    .details =
        "Programs start a keeper when they need one, and it ends when there is nothing to keep.\n"
        "Run one yourself where regions must outlive the service or container that made them.\n"
        "SIGTERM and SIGINT end it: what is mapped stays mapped, but cannot be opened any more.\n",
    .options = {{"idle", 0, "TIME", "end after so long with nothing to keep (default: never)"},
                {"on-demand", 0, NULL, NULL}},
    .usage_status = TOOL_USAGE,
    .run = run_keeper,
};
