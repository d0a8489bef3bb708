/*
 * descendants.c - see descendants.h.
 *
 * Signals are blocked and read from a descriptor, so none is lost between a check and a wait. The
 * command gets back the mask and the dispositions that this process was started with.
 */
#include "descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "own_pid.h"
#include "process/program.h"
#include "util/clock.h"
#include "util/procfs.h"

#define GRACE       (5 * GPS_SECOND)
#define FIRST_PAUSE (GPS_SECOND / 20) /* between scans */
#define EVENT_PAUSE (GPS_SECOND / 2000)
#define LAST_PAUSE  GPS_SECOND
#define SCAN_SHARE  4          /* scans take at most one part in so many of the time */
#define TELL_AFTER  GPS_SECOND /* most programs have ended by then */
#define NAMED_MAX   8
#define WORDS_BYTES 4096

/* --- who they are --- */

struct process {
    uint32_t pid, parent;
    bool ended;
};

/* Lists all processes that /proc shows; malloc'ed. */
static struct process *read_processes(size_t *count) {
    struct process *list = NULL;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        const uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        struct gps_procfs_stat stat;
        if (pid == 0 || gps_procfs_stat(pid, &stat) != 0)
            continue;
        const bool ended = stat.state == 'Z' || stat.state == 'X';
        list = tool_grow(list, *count, sizeof(*list));
        list[(*count)++] = (struct process){pid, (uint32_t)stat.parent, ended};
    }
    if (directory)
        closedir(directory);
    return list;
}

static size_t visit(const struct process *list, size_t count, uint32_t parent, descendants_fn *fn,
                    void *arg) {
    size_t living = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].parent != parent)
            continue;
        living += !list[i].ended;
        if (fn && !list[i].ended)
            fn(arg, list[i].pid);
        living += visit(list, count, list[i].pid, fn, arg);
    }
    return living;
}

/* Calls fn, unless it is NULL, for each descendant that lives. Returns how many do. */
static size_t each_living(descendants_fn *fn, void *arg) {
    size_t count = 0;
    struct process *list = read_processes(&count);
    const size_t living = visit(list, count, (uint32_t)getpid(), fn, arg);
    free(list);
    return living;
}

static FILE *open_proc(uint32_t pid, const char *name) {
    char *path = tool_format("/proc/%" PRIu32 "/%s", pid, name);
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

char *descendants_variable(uint32_t pid, const char *variable) {
    const size_t length = strlen(variable);
    char *entry = NULL, *value = NULL;
    size_t size = 0;
    FILE *environment = open_proc(pid, "environ");
    while (environment && !value && getdelim(&entry, &size, 0, environment) > 0)
        if (strncmp(entry, variable, length) == 0 && entry[length] == '=')
            value = tool_copy(entry + length + 1);
    free(entry);
    if (environment)
        fclose(environment);
    return value;
}

static void read_executable(uint32_t pid, char name[GPS_GLOB_BYTES]) {
    char path[PATH_MAX] = "";
    char *link = tool_format("/proc/%" PRIu32 "/exe", pid);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    snprintf(name, GPS_GLOB_BYTES, "%s", length > 0 ? tool_base_name(path) : "?");
    free(link);
}

char *descendants_name(uint32_t pid) {
    char words[WORDS_BYTES] = "";
    struct gps_program program;
    FILE *line = open_proc(pid, "cmdline");
    const size_t count = line ? fread(words, 1, sizeof(words) - 1, line) : 0;
    if (line)
        fclose(line);
    char *given = descendants_variable(pid, "GPUSHARE_PROGRAM");
    read_executable(pid, program.executable);
    gps_program_read(&program, words, count, given);
    free(given);
    return tool_copy(program.name);
}

/* --- signals --- */

struct wait {
    enum descendants_awaited awaited;
    pid_t command;
    bool ended, interrupted;
    int status;
    int signals;   /* the descriptor from which they are read */
    sigset_t mask; /* this and the dispositions are those that the command gets back */
    struct sigaction child, pipe;
    const struct descendants_scan *scan;
    uint64_t pause, next_scan, earliest_scan;
    uint64_t tell; /* the time at which a message names those that go on after a Ctrl-C */
};

static int guard(struct wait *wait) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    sigset_t taken;
    sigemptyset(&taken);
    for (const int *number = (int[]){SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, 0}; *number;)
        sigaddset(&taken, *number++);
    if (wait->awaited == DESCENDANTS_NONE)
        for (const int *number = (int[]){SIGUSR1, SIGUSR2, 0}; *number;)
            sigaddset(&taken, *number++);
    wait->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (wait->signals < 0)
        return -errno;
    sigprocmask(SIG_BLOCK, &taken, &wait->mask);
    sigaction(SIGCHLD, &normal,
              &wait->child); /* if it were ignored, a child would leave no status */
    sigaction(SIGPIPE, &ignore, &wait->pipe);
    return 0;
}

static void unguard(const struct wait *wait) {
    sigaction(SIGCHLD, &wait->child, NULL);
    sigaction(SIGPIPE, &wait->pipe, NULL);
    sigprocmask(SIG_SETMASK, &wait->mask, NULL);
}

/* --- the command --- */

/* The command of `run` stands for the process that started it: a SIGKILL of that one ends it, too,
 * as where the command replaces it. */
static void end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it has ended already */
        raise(SIGKILL);
}

static void become(const struct wait *wait, char **command, pid_t parent, int failed) {
    unguard(wait);
    if (wait->awaited == DESCENDANTS_NONE)
        end_with(parent);
    execvp(command[0], command);
    int error = errno;
    (void)!write(failed, &error, sizeof(error));
    _exit(127);
}

/* The pipe closes at the exec, or brings its error. */
static int start(struct wait *wait, char **command) {
    const pid_t parent = getpid();
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    wait->command = own_pid_needed() ? own_pid_fork() : fork();
    if (wait->command == 0)
        become(wait, command, parent, ends[1]);
    if (wait->command < 0)
        error = errno;
    close(ends[1]);
    while (error == 0 && read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    return -error;
}

/* Reaps the children that have ended. False: there is no child left. */
static bool reap(struct wait *wait) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != wait->command)
            continue;
        wait->ended = true;
        wait->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return pid == 0;
}

/* --- after a Ctrl-C --- */

struct names {
    char *list;
    size_t count;
};

static void add_name(void *arg, uint32_t pid) {
    struct names *names = arg;
    if (names->count++ >= NAMED_MAX)
        return;
    char *name = descendants_name(pid);
    tool_list(&names->list, "%s (pid %" PRIu32 ")", name, pid);
    free(name);
}

static void tell_who_goes_on(const struct wait *wait) {
    struct names names = {NULL, 0};
    char more[48] = "";
    each_living(add_name, &names);
    if (names.count > NAMED_MAX)
        snprintf(more, sizeof(more), " and %zu more", names.count - NAMED_MAX);
    if (names.count > 0 && wait->ended)
        tool_warn("waiting up to %d s for what goes on after Ctrl-C: %s%s; a second Ctrl-C ends "
                  "the waiting",
                  (int)(GRACE / GPS_SECOND), names.list, more);
    else if (names.count > 0)
        tool_warn("waiting for what goes on after Ctrl-C: %s%s; Ctrl-\\ or kill %d may end the "
                  "command",
                  names.list, more, (int)wait->command);
    free(names.list);
}

static void note_interrupt(struct wait *wait) {
    if (!wait->interrupted)
        wait->tell = gps_clock_monotonic() + TELL_AFTER;
    wait->interrupted = true;
}

/* --- waiting --- */

static void scan_all(struct wait *wait) {
    const uint64_t begin = gps_clock_monotonic();
    each_living(wait->scan->fn, wait->scan->arg);
    const uint64_t end = gps_clock_monotonic();
    wait->earliest_scan = end + (SCAN_SHARE - 1) * (end - begin);
    wait->pause = wait->pause < LAST_PAUSE / 2 ? 2 * wait->pause : LAST_PAUSE;
    wait->next_scan = end + wait->pause;
}

static void note_event(struct wait *wait) {
    char events[4096];
    while (read(wait->scan->events, events, sizeof(events)) > 0)
        continue;
    wait->pause = EVENT_PAUSE;
    wait->next_scan = 0;
}

/* Does what is due. Returns the time at which something is due next. */
static uint64_t attend(struct wait *wait) {
    const uint64_t now = gps_clock_monotonic();
    if (now >= wait->next_scan && now >= wait->earliest_scan)
        scan_all(wait);
    if (now >= wait->tell) {
        wait->tell = UINT64_MAX;
        tell_who_goes_on(wait);
    }
    const uint64_t next =
        wait->next_scan > wait->earliest_scan ? wait->next_scan : wait->earliest_scan;
    return wait->tell < next ? wait->tell : next;
}

/* False: no signal has come until then. */
static bool next_signal(struct wait *wait, uint64_t until, struct signalfd_siginfo *info) {
    struct pollfd ready[] = {{.fd = wait->signals, .events = POLLIN},
                             {.fd = wait->scan ? wait->scan->events : -1, .events = POLLIN}};
    while (read(wait->signals, info, sizeof(*info)) != sizeof(*info)) {
        const uint64_t next = attend(wait), end = next < until ? next : until;
        const uint64_t now = gps_clock_monotonic(), rest = end > now ? end - now : 0;
        if (now >= until)
            return false;
        ppoll(ready, 2, &(struct timespec){(time_t)(rest / GPS_SECOND), (long)(rest % GPS_SECOND)},
              NULL);
        if (ready[1].revents != 0)
            note_event(wait);
    }
    return true;
}

/* A terminal has sent its signals to the command, too. */
static bool is_passed_on(const struct wait *wait, const struct signalfd_siginfo *info) {
    const uint32_t number = info->ssi_signo;
    return number == SIGTERM || number == SIGHUP ||
           (wait->awaited == DESCENDANTS_NONE && number != SIGCHLD && info->ssi_code <= 0);
}

static void await_command(struct wait *wait) {
    while (reap(wait) && !wait->ended) {
        struct signalfd_siginfo info;
        next_signal(wait, UINT64_MAX, &info);
        if (info.ssi_signo == SIGINT && wait->awaited == DESCENDANTS_ALL)
            note_interrupt(wait);
        if (is_passed_on(wait, &info))
            kill(wait->command, (int)info.ssi_signo);
    }
}

/* False: some are left. A signal that asks this process to end also ends the wait, as does a second
 * Ctrl-C. */
static bool await_others(struct wait *wait) {
    const uint64_t now = gps_clock_monotonic(), until = now + GRACE;
    if (wait->interrupted)
        wait->tell = now + TELL_AFTER;
    while (reap(wait)) {
        struct signalfd_siginfo info;
        if (!next_signal(wait, until, &info) || info.ssi_signo == SIGTERM ||
            info.ssi_signo == SIGHUP || (info.ssi_signo == SIGINT && wait->interrupted))
            return false;
        if (info.ssi_signo == SIGINT)
            note_interrupt(wait);
    }
    return true;
}

int descendants_run(char **command, enum descendants_awaited awaited,
                    const struct descendants_scan *scan, struct descendants *descendants) {
    struct wait wait = {.awaited = awaited,
                        .scan = scan,
                        .pause = FIRST_PAUSE,
                        .next_scan = scan ? gps_clock_monotonic() + FIRST_PAUSE : UINT64_MAX,
                        .tell = UINT64_MAX};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int status = guard(&wait);
    if (status != 0)
        return status;
    status = start(&wait, command);
    if (status == 0) {
        await_command(&wait);
        *descendants = (struct descendants){wait.status, 0};
        if (awaited == DESCENDANTS_ALL && !await_others(&wait))
            descendants->running = each_living(NULL, NULL);
    }
    unguard(&wait);
    close(wait.signals);
    return status;
}
