/*
 * Signals are blocked and read from a descriptor, so none is lost between a check and a wait. The
 * command gets back the mask and the dispositions that this process was started with. Between two
 * signals this process looks around: once a second, and often for a while after libcuda was opened.
 */
#include "command.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cli/tool.h"
#include "descendants.h"
#include "directory/file.h"
#include "directory/processes.h"
#include "directory/view.h"
#include "launch.h"
#include "util/clock.h"
#include "util/procfs.h"
#include "watched.h"

#define GRACE       (5 * GPS_SECOND)
#define LONG_PAUSE  GPS_SECOND /* between looks */
#define SHORT_PAUSE (GPS_SECOND / 100)
#define LIVELY      GPS_SECOND /* how long the pauses are short */
#define TELL_AFTER  GPS_SECOND /* most programs have ended by then */
#define NAMED_MAX   8

struct run {
    enum command_awaited awaited;
    struct watched *watched;
    pid_t command;
    bool ended, interrupted;
    int status;
    int signals;   /* the descriptor from which they are read */
    sigset_t mask; /* this and the dispositions are those that the command gets back */
    struct sigaction child, pipe;
    uint64_t looked; /* the time of the last look */
    uint64_t cost;   /* how long it took: looks take a quarter of the time at most */
    uint64_t lively; /* until then looks follow soon: something has happened */
    uint64_t tell;   /* the time at which a message names those that go on after a Ctrl-C */
    uint64_t until;  /* the end of the wait for what the command leaves */
};

/* --- signals --- */

static struct {
    bool held;
    sigset_t before;
} mask;

void command_hold_signals(void) {
    const int numbers[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    if (!mask.held)
        sigprocmask(SIG_BLOCK, &set, &mask.before);
    mask.held = true;
}

void command_release_signals(void) {
    if (mask.held)
        sigprocmask(SIG_SETMASK, &mask.before, NULL);
    mask.held = false;
}

static int guard(struct run *run) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    const int numbers[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
    const size_t count = run->awaited == COMMAND_ALONE ? 7 : 5;
    sigset_t taken;
    sigemptyset(&taken);
    for (size_t i = 0; i < count; i++)
        sigaddset(&taken, numbers[i]);
    run->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals < 0)
        return -errno;
    sigprocmask(SIG_BLOCK, &taken, &run->mask);
    sigaction(SIGCHLD, &normal, &run->child); /* an ignored child would leave no status */
    sigaction(SIGPIPE, &ignore, &run->pipe);
    return 0;
}

static void unguard(const struct run *run) {
    sigaction(SIGCHLD, &run->child, NULL);
    sigaction(SIGPIPE, &run->pipe, NULL);
    sigprocmask(SIG_SETMASK, &run->mask, NULL);
}

/* --- its pid --- */

enum { FIRST = 300, LAST = 32767, TRIES = 16 };

struct wanted {
    pid_t pid;
    uint64_t space;
    bool taken;
};

static bool note_taken(void *arg, const struct gps_proc *proc) {
    struct wanted *wanted = arg;
    const struct gps_owner *owner = &proc->header.owner;
    wanted->taken =
        proc->alive && owner->pid == (uint32_t)wanted->pid && owner->pid_ns != wanted->space;
    return !wanted->taken;
}

static bool own_pid_is_taken(pid_t pid) {
    struct wanted wanted = {pid, gps_procfs_pid_ns(), false};
    struct view_place place;
    struct gps_store store;
    view_place_get(&place);
    if (view_store(&place, false, &store) == 0)
        gps_proc_each(&store, note_taken, &wanted);
    return wanted.taken;
}

bool own_pid_needed(void) {
    const uint64_t space = gps_procfs_pid_ns();
    return space != 0 && (space != GPS_PROCFS_FIRST_PID_NS || own_pid_is_taken(getpid()));
}

/* Forks a child with this pid. -1 and EPERM: this user may not choose; EEXIST: a process has it. */
static pid_t fork_as(pid_t pid) {
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Forks a child with such a pid, if this user may choose one (CAP_CHECKPOINT_RESTORE). Else it has
 * the next one, and a warning says so where a process of another pid namespace has that. */
static pid_t own_pid_fork(void) {
    for (unsigned tries = 0; tries < TRIES; tries++) {
        const pid_t pid = (pid_t)(FIRST + gps_random() % (LAST - FIRST));
        if (own_pid_is_taken(pid))
            continue;
        const pid_t child = fork_as(pid);
        if (child >= 0)
            return child;
        if (errno != EEXIST)
            break;
    }
    const pid_t child = fork();
    if (child > 0 && own_pid_is_taken(child))
        tool_warn("a process of another container is process %d, too, so neither can open events "
                  "of the other, or memory that is not exported under gpushare; let gpushare run "
                  "choose the pid (--cap-add CHECKPOINT_RESTORE), or give both containers one pid "
                  "namespace (--pid)",
                  (int)child);
    return child;
}

/* --- the command --- */

/* The command of `run` stands for the process that started it: a SIGKILL of that one ends it, too,
 * as where the command replaces it. */
static void end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it has ended already */
        raise(SIGKILL);
}

/* Waits for a byte on the channel, and answers with an error unless the command is executed. */
static void command_become(const struct run *run, char **command, pid_t parent, int channel) {
    char go;
    unguard(run);
    command_release_signals();
    if (run->awaited == COMMAND_ALONE)
        end_with(parent);
    if (read(channel, &go, 1) != 1)
        _exit(127);
    int error = launch_execute(command);
    (void)!write(channel, &error, sizeof(error));
    _exit(127);
}

/* The channel closes at the exec, or brings its error. */
static int command_start(struct run *run, char **command) {
    const pid_t parent = getpid();
    int ends[2], error = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    run->command = own_pid_needed() ? own_pid_fork() : fork();
    if (run->command == 0) {
        close(ends[0]);
        command_become(run, command, parent, ends[1]);
    }
    if (run->command < 0)
        error = errno;
    close(ends[1]);
    if (error == 0 && write(ends[0], "", 1) == 1)
        (void)!TEMP_FAILURE_RETRY(read(ends[0], &error, sizeof(error)));
    close(ends[0]);
    return -error;
}

static void note_interrupt(struct run *run) {
    run->interrupted = true;
    run->tell = gps_clock_monotonic() + TELL_AFTER;
}

static void command_note_end(struct run *run, int status) {
    run->ended = true;
    run->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    run->until = gps_clock_monotonic() + GRACE;
    if (run->interrupted)
        note_interrupt(run);
}

/* Reaps the children that have ended. False: there is no child left. */
static bool command_reap(struct run *run) {
    int status;
    for (;;) {
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended <= 0)
            return ended == 0;
        if (ended == run->command)
            command_note_end(run, status);
    }
}

/* --- after a Ctrl-C --- */

/* "app (pid 7), sleep (pid 8) and 3 more"; malloc'ed. NULL: none lives. */
static char *names_of_living(size_t *count) {
    char *names = NULL;
    TOOL_TEMP uint32_t *living = descendants_living(count);
    for (size_t i = 0; i < *count && i < NAMED_MAX; i++) {
        TOOL_TEMP char *name = descendants_name(living[i]);
        tool_list(&names, "%s (pid %" PRIu32 ")", name, living[i]);
    }
    if (*count <= NAMED_MAX)
        return names;
    TOOL_TEMP char *first = names;
    return tool_format("%s and %zu more", first, *count - NAMED_MAX);
}

static void tell_who_goes_on(const struct run *run) {
    size_t count;
    TOOL_TEMP char *names = names_of_living(&count);
    if (count > 0 && run->ended)
        tool_warn("waiting up to %d s for what goes on after Ctrl-C: %s; a second Ctrl-C ends "
                  "the waiting",
                  (int)(GRACE / GPS_SECOND), names);
    else if (count > 0)
        tool_warn("waiting for what goes on after Ctrl-C: %s; Ctrl-\\ or kill %d may end the "
                  "command",
                  names, (int)run->command);
}

/* --- waiting --- */

static void command_look(struct run *run) {
    const uint64_t begun = gps_clock_monotonic();
    if (run->watched)
        watched_look(run->watched);
    run->cost = gps_clock_monotonic() - begun;
    if (gps_clock_monotonic() >= run->tell) {
        run->tell = UINT64_MAX;
        tell_who_goes_on(run);
    }
    run->looked = gps_clock_monotonic();
}

/* The time until something is due: a look, the message, or the end of the wait. */
static uint64_t pause_left(const struct run *run) {
    const uint64_t now = gps_clock_monotonic();
    uint64_t pause = now < run->lively ? SHORT_PAUSE : LONG_PAUSE;
    pause = pause > 3 * run->cost ? pause : 3 * run->cost;
    uint64_t next = run->looked + pause;
    next = next < run->tell ? next : run->tell;
    next = next < run->until ? next : run->until;
    return next > now ? next - now : 0;
}

/* The next signal; 0: there is none before the next look. *sent: a process sent it. */
static int next_signal(struct run *run, bool *sent) {
    if (pause_left(run) == 0)
        command_look(run);
    const int pause = (int)(pause_left(run) / 1000000) + 1;
    struct pollfd ready[] = {{.fd = run->signals, .events = POLLIN},
                             {.fd = run->watched ? run->watched->opened : -1, .events = POLLIN}};
    struct signalfd_siginfo info;
    char events[4096];
    poll(ready, 2, run->awaited == COMMAND_ALONE ? -1 : pause);
    if (ready[1].revents != 0 && read(ready[1].fd, events, sizeof(events)) > 0)
        run->lively = gps_clock_monotonic() + LIVELY;
    if (read(run->signals, &info, sizeof(info)) != sizeof(info))
        return 0;
    *sent = info.ssi_code <= 0;
    return (int)info.ssi_signo;
}

/* False: the signal ends the wait for what the command has left. */
static bool act_on(struct run *run, int number, bool sent) {
    const bool alone = run->awaited == COMMAND_ALONE;
    const bool ends = number == SIGTERM || number == SIGHUP;
    if (run->ended && (ends || (number == SIGINT && run->interrupted)))
        return false;
    if (!run->ended && (ends || (alone && sent && number != SIGCHLD)))
        kill(run->command, number);
    if (number == SIGINT && !alone && !run->interrupted)
        note_interrupt(run);
    return true;
}

/* Waits for the command, and for what it leaves if that is awaited. False: some are left. */
static bool command_await(struct run *run) {
    while (command_reap(run)) {
        if (run->ended && run->awaited == COMMAND_ALONE)
            return true;
        bool sent = false;
        const int number = next_signal(run, &sent);
        if (gps_clock_monotonic() >= run->until || !act_on(run, number, sent))
            return false;
    }
    return true;
}

/* Drops signals that came while the command ran: they were for the command. */
static void drop_signals(const struct run *run) {
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof(info)) == sizeof(info))
        ;
}

int command_run(char **command, enum command_awaited awaited, struct watched *watched,
                struct command_left *left) {
    struct run run = {
        .awaited = awaited, .watched = watched, .tell = UINT64_MAX, .until = UINT64_MAX};
    *left = (struct command_left){.names = NULL};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int status = guard(&run);
    if (status != 0)
        return status;
    status = command_start(&run, command);
    if (status == 0) {
        run.lively = gps_clock_monotonic() + LIVELY;
        if (!command_await(&run))
            left->names = names_of_living(&left->count);
        status = run.status;
        drop_signals(&run);
    }
    unguard(&run);
    close(run.signals);
    return status;
}

/* A word of a command line, as a shell is to be given it. */
static void put_word(const char *word) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+-./:=@_,";
    if (*word && word[strspn(word, plain)] == 0) {
        fprintf(stderr, " %s", word);
        return;
    }
    fputs(" '", stderr);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, 0}, stderr);
    putc('\'', stderr);
}

void command_tell_next(const char *before, char **command, const char *path) {
    const bool file = path && strcmp(path, "-") != 0;
    fprintf(stderr, "%s%s: gpushare run -c", before, file ? "" : ", with the rules in a file");
    put_word(file ? path : "FILE");
    fputs(" --", stderr);
    for (; *command; command++)
        put_word(*command);
    putc('\n', stderr);
}
