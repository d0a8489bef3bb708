/*
 * keeper.c - `gpushare keeper`: holds VMM regions' descriptors, so they outlive their creators.
 *
 * Programs start a keeper by themselves (--on-demand). It ends when there is nothing to keep.
 */
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "cli/tool.h"
#include "config/config.h"
#include "directory/file.h"
#include "directory/leader_lock.h"
#include "directory/orders.h"
#include "directory/orphans.h"
#include "directory/processes.h"
#include "directory/view.h"
#include "keeper_state.h"
#include "run/descendants.h"
#include "util/clock.h"
#include "util/procfs.h"

#define DEBOUNCE      (GPS_SECOND / 50) /* many changes come at once */
#define SWEEP_SHARE   20                /* sweeps take at most one part in so many of the time */
#define LONGEST_PAUSE (GPS_SECOND / 4)
#define SLOW          (30 * GPS_SECOND) /* between sweeps with nothing to keep */
#define DEMAND_IDLE   (2 * GPS_SECOND)
#define METRICS_EVERY (15 * GPS_SECOND)

enum { OPTION_IDLE, OPTION_METRICS, OPTION_EVERY, OPTION_REPLACE, OPTION_ON_DEMAND };
enum { FD_LISTENER, FD_SIGNALS, FD_CHANGES, FD_CONNECTIONS };

/* --- metrics --- */

#define END_TIMEOUT_MS 1000

/* Makes the path absolute. 0 or -errno. */
static int metrics_job_begin(struct metrics_job *job, const char *file, uint64_t every) {
    *job = (struct metrics_job){.every = every};
    job->file = tool_absolute(file);
    job->home = job->file ? tool_absolute(".") : NULL;
    if (!job->home)
        return -errno;
    const int length = (int)(strrchr(job->file, '/') - job->file) + 1;
    TOOL_TEMP char *directory = tool_format("%.*s", length, job->file);
    return access(directory, W_OK | X_OK) == 0 ? 0 : -errno;
}

/* The keeper has changed its directory, and blocks or ignores signals: the writer undoes that. */
static void become_writer(const struct metrics_job *job) {
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(job->home) == 0)
        execl("/proc/self/exe", "gpushare", "metrics", "--output", job->file, (char *)NULL);
    _exit(TOOL_CANNOT_EXECUTE);
}

static void metrics_job_reap(struct metrics_job *job) {
    if (job->writer > 0 && waitpid(job->writer, NULL, WNOHANG) != 0)
        job->writer = 0;
}

/* Starts a writer if it is time. */
static void metrics_job_turn(struct metrics_job *job, uint64_t now) {
    metrics_job_reap(job);
    if (!job->file || now < job->next)
        return;
    job->next = now + job->every;
    if (job->writer > 0)
        return;
    job->writer = fork();
    if (job->writer == 0)
        become_writer(job);
    if (job->writer < 0)
        job->writer = 0; /* another is started the next time */
}

/* Removes the file: old figures would pass for new ones. */
static void metrics_job_end(struct metrics_job *job) {
    if (!job->file)
        return;
    for (int i = 0; i < END_TIMEOUT_MS / 10 && job->writer > 0; i++, metrics_job_reap(job))
        usleep(10000);
    unlink(job->file);
    free(job->file);
    free(job->home);
    job->file = NULL;
}

/* --- waiting --- */

/* When a process dies the kernel closes its file, which inotify reports, too. */
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

/* The parent may have blocked or ignored any of these; a blocked signal is never ignored. */
static int take_signals(void) {
    sigset_t ours;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would not report the end of the stand-by */
    standby_signals(&ours);
    sigprocmask(SIG_SETMASK, &ours, NULL);
    return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The time at which the keeper ends unless it gets a region or a connection. */
static uint64_t idle_end(const struct keeper *keeper) {
    const bool busy = region_list_count(&keeper->regions) > 0 || keeper->connection_count > 0;
    return busy || keeper->idle == KEEPER_NEVER ? KEEPER_NEVER : keeper->idle_since + keeper->idle;
}

/* How long poll may wait: until the first task is due. */
static int timeout(const struct keeper *keeper) {
    uint64_t when = keeper->sweep_at;
    sooner(&when, connections_expiry(keeper));
    if (keeper->accept_after > keeper->now)
        sooner(&when, keeper->accept_after);
    if (keeper->metrics.file)
        sooner(&when, keeper->metrics.next);
    sooner(&when, idle_end(keeper));
    sooner(&when, standby_due(keeper));
    const uint64_t now = gps_clock_monotonic();
    if (when == KEEPER_NEVER)
        return -1;
    if (when <= now)
        return 0;
    return when - now < 1000 * GPS_SECOND ? (int)((when - now) / 1000000) + 1 : 1000000;
}

/* --- an iteration --- */

/* Reads a signal. Each turn looks for children that have ended. */
static void take_signal(struct keeper *keeper) {
    struct signalfd_siginfo info;
    while (read(keeper->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        keeper->told |= info.ssi_signo != SIGCHLD;
}

static size_t keeper_fill_poll(const struct keeper *keeper, struct pollfd *wait) {
    bool full = connections_full(keeper) || keeper->accept_after > keeper->now;
    wait[FD_LISTENER] = (struct pollfd){.fd = full ? -1 : keeper->listener, .events = POLLIN};
    wait[FD_SIGNALS] = (struct pollfd){.fd = keeper->signals, .events = POLLIN};
    wait[FD_CHANGES] = (struct pollfd){.fd = keeper->changes, .events = POLLIN};
    for (size_t i = 0; i < keeper->connection_count; i++)
        wait[FD_CONNECTIONS + i] = (struct pollfd){
            .fd = connections_waited_for(keeper, i) ? keeper->connections[i].fd : -1,
            .events = POLLIN};
    return keeper->connection_count;
}

/* The last connection first: serving one moves those behind it. */
static void keeper_answer_poll(struct keeper *keeper, const struct pollfd *wait, size_t count) {
    if (wait[FD_SIGNALS].revents != 0)
        take_signal(keeper);
    if (wait[FD_CHANGES].revents != 0) {
        char bytes[4096];
        while (read(keeper->changes, bytes, sizeof(bytes)) > 0)
            continue;
        sooner(&keeper->sweep_at, keeper->now + DEBOUNCE);
    }
    for (size_t i = count; i-- > 0 && !keeper->replaced;)
        if (wait[FD_CONNECTIONS + i].revents != 0 && connections_waited_for(keeper, i))
            connections_serve(keeper, i);
    if (wait[FD_LISTENER].revents != 0)
        connections_accept(keeper);
    connections_expire(keeper);
}

/* The last process to leave removes the files of dead ones. A keeper without others is the last. */
static void collect_garbage(struct keeper *keeper, unsigned others) {
    struct gps_gc_counts counts;
    if (others == 0 && keeper->others != 0)
        gps_store_gc(&keeper->store, false, &counts);
    keeper->others = others;
}

static void sweep(struct keeper *keeper) {
    const uint64_t begin = gps_clock_monotonic();
    if (keeper->sweep_at < keeper->not_before)
        keeper->sweep_at = keeper->not_before;
    if (begin < keeper->sweep_at)
        return;
    keeper->sweep_at = KEEPER_NEVER;
    keeper->evicted = !gps_leader_lock_holds(&keeper->store, keeper->lock);
    if (keeper->evicted)
        keeper->ending = true;
    if (keeper->ending)
        return;
    uint64_t next = KEEPER_NEVER;
    unsigned others;
    if (region_list_sweep(&keeper->regions, begin, &next, &others) == 0)
        collect_garbage(keeper, others);
    uint64_t end = gps_clock_monotonic();
    uint64_t pause = (end - begin) * SWEEP_SHARE;
    sooner(&pause, LONGEST_PAUSE);
    keeper->not_before = end + pause;
    sooner(&keeper->sweep_at, next);
    sooner(&keeper->sweep_at, end + (region_list_count(&keeper->regions) > 0 ? GPS_SECOND : SLOW));
}

struct sleeper {
    const struct gps_store *store;
    struct gps_owner owner; /* pid 0: there is none */
};

static bool find_sleeper(void *arg, const struct gps_proc *proc) {
    struct sleeper *sleeper = arg;
    if (proc->alive && gps_answer_sleeps(sleeper->store, &proc->header.owner))
        sleeper->owner = proc->header.owner;
    return sleeper->owner.pid == 0;
}

/* Whether the keeper may end: a suspended process can have its shared memory only from here. */
static bool may_end(struct keeper *keeper) {
    struct sleeper sleeper = {.store = &keeper->store};
    if (region_list_count(&keeper->regions) == 0)
        return true;
    const int status = gps_proc_each(&keeper->store, find_sleeper, &sleeper);
    if (status == 0 && sleeper.owner.pid == 0)
        return true;
    if (!keeper->stays && sleeper.owner.pid != 0)
        tool_warn("stays until process %u is resumed, which is suspended: what it shares only this "
                  "keeper has; another one can take it over: gpushare keeper --replace",
                  sleeper.owner.pid);
    keeper->stays = true;
    return false;
}

static void run_once(struct keeper *keeper) {
    static struct pollfd wait[FD_CONNECTIONS + CONNECTIONS_MAX];
    size_t count = keeper_fill_poll(keeper, wait);
    int ready = poll(wait, FD_CONNECTIONS + count, timeout(keeper));
    keeper->now = gps_clock_monotonic();
    if (ready >= 0)
        keeper_answer_poll(keeper, wait, count);
    if (keeper->replaced)
        return;
    sweep(keeper);
    metrics_job_turn(&keeper->metrics, keeper->now);
    if (region_list_count(&keeper->regions) > 0)
        keeper->idle_since = keeper->now;
    keeper->ending |= keeper->now >= idle_end(keeper) || (keeper->told && may_end(keeper));
}

/* --- the verb --- */

static const char *keeper_failure_reason(int status) {
    switch (status) {
    case -ENOSPC:
        return "no room is left there";
    case -EMFILE:
        return "it needs more descriptors than the hard limit allows (ulimit -Hn)";
    case -ECONNRESET:
        return "it hangs up, as one of another version does; end it first";
    case -EAGAIN:
    case -ETIMEDOUT:
        return "it does not answer";
    default:
        return strerror(-status);
    }
}

static bool is_on_demand(const struct gps_owner *keeper) {
    static const char option[] = "--on-demand";
    size_t size;
    if (keeper->pid_ns != gps_procfs_pid_ns())
        return false;
    TOOL_TEMP char *line = descendants_read(keeper->pid, "cmdline", &size);
    return memmem(line, size, option, sizeof(option) - 1);
}

static int keeper_refuse(const struct keeper *keeper, int status, const struct gps_owner *other) {
    if (status != -EEXIST && other->pid != 0)
        tool_error("cannot replace the keeper of %s, pid %u: %s", keeper->store.path, other->pid,
                   keeper_failure_reason(status));
    else if (status != -EEXIST)
        tool_error("cannot keep %s: %s", keeper->store.path, keeper_failure_reason(status));
    else if (other->pid != 0)
        tool_error("%s has a keeper already: %s, pid %u%s; to take over what it keeps: gpushare "
                   "keeper --replace",
                   keeper->store.path, other->command, other->pid,
                   is_on_demand(other) ? ", which a program has started" : "");
    else
        tool_error("%s has a keeper already, which does not answer", keeper->store.path);
    return TOOL_FAILED;
}

/* The stand-by ends first, or it would go on as keeper. */
static int keeper_finish(struct keeper *keeper, bool on_demand) {
    standby_end(keeper);
    metrics_job_end(&keeper->metrics);
    if (keeper->replaced && !on_demand)
        tool_warn("another keeper has taken over %s", keeper->store.path);
    if (keeper->replaced)
        return TOOL_OK;
    if (keeper->evicted && !on_demand)
        tool_error("%s was removed, or replaced by another", keeper->store.path);
    if (keeper->evicted) /* nothing in the store is ours any more */
        return on_demand ? TOOL_OK : TOOL_FAILED;
    leadership_end(keeper);
    return TOOL_OK;
}

static int keeper_serve(struct keeper *keeper, bool replace, bool on_demand) {
    keeper->signals = take_signals();
    struct gps_owner other = {0};
    int status = leadership_take(keeper, replace, &other);
    if (status == -EEXIST && on_demand)
        return TOOL_OK;
    if (status != 0)
        return keeper_refuse(keeper, status, &other);
    keeper->changes = watch_processes(&keeper->store);
    keeper->idle_since = keeper->now = gps_clock_monotonic();
    keeper->others = 1;
    if (!on_demand) {
        printf("Serving %s, pid %d.\n", keeper->store.path, (int)getpid());
        fflush(stdout);
    }
    sweep(keeper);
    metrics_job_turn(&keeper->metrics, keeper->now);
    while (!keeper->ending) {
        standby_turn(keeper);
        run_once(keeper);
    }
    return keeper_finish(keeper, on_demand);
}

static bool parse_time(const char *option, const char *text, uint64_t *nanos) {
    if (!text || gps_parse_duration(text, nanos))
        return true;
    return tool_error("--%s '%s' is not a time; allowed: 500ms, 30s, 2min ...", option, text);
}

static bool keeper_parse(const struct tool_args *args, struct keeper *keeper) {
    const char *file = args->values[OPTION_METRICS], *every = args->values[OPTION_EVERY];
    uint64_t pause = METRICS_EVERY;
    keeper->idle = args->values[OPTION_ON_DEMAND] ? DEMAND_IDLE : KEEPER_NEVER;
    if (!parse_time("idle", args->values[OPTION_IDLE], &keeper->idle) ||
        !parse_time("every", every, &pause))
        return false;
    if ((every && !file) || pause < GPS_SECOND / 10)
        return tool_error("--every needs --metrics, and 100ms or more");
    int status = file ? metrics_job_begin(&keeper->metrics, file, pause) : 0;
    if (status != 0)
        tool_error("cannot write metrics to '%s': %s", file, strerror(-status));
    return status == 0;
}

static int run_keeper(const struct tool_args *args) {
    static struct keeper keeper;
    if (!keeper_parse(args, &keeper))
        return TOOL_USAGE;
    if (view_store_open(true, &keeper.store) != 0)
        return TOOL_FAILED;
    return keeper_serve(&keeper, args->values[OPTION_REPLACE], args->values[OPTION_ON_DEMAND]);
}

const struct tool_verb tool_verb_keeper = {
    .name = "keeper",
    .operands = "",
    .summary = "keep regions of backing = vmm, in the foreground",
    .details = "Holds the memory of regions and hands it to importers, so that a region can "
               "outlive the process that created it.\n\n"
               "Programs start a keeper when they need one, and it ends when there is nothing to "
               "keep. There is one in a namespace. Run one yourself where regions must outlive "
               "the service or container that made them, or to see what it has to say.\n\n"
               "A second process, keeper-stand-by in ps, stands by, and goes on with all that is "
               "kept when the first is killed.\n"
               "If both are killed at once, what is mapped stays mapped. The next keeper adopts "
               "the regions that live processes hold, and gets those whose creators live from "
               "them.\n\n"
               "SIGTERM and SIGINT end both: what is mapped stays mapped, but cannot be opened "
               "any more. While a process is suspended (gpushare suspend) they stay, and end when "
               "all are resumed.\n"
               "The exit status is 1 if the namespace has a keeper already.\n",
    .options = {{"idle", 0, "TIME",
                 "end after so long with nothing to keep, as 500ms, 30s or 2min (default: never)"},
                {"metrics", 0, "FILE",
                 "write metrics there, as gpushare metrics does; removed at the end"},
                {"every", 0, "TIME", "with --metrics: how often, 100ms or more (15s)"},
                {"replace", 0, NULL,
                 "take over what another keeper keeps, as one that a program started; that one "
                 "ends, and programs wait no longer than for any"},
                {"on-demand", 0, NULL, NULL}},
    .run = run_keeper,
};
