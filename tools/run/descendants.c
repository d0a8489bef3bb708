/*
 * descendants.c - runs a command, and waits for it and for all that it starts.
 *
 * Signals stay blocked and are taken one by one, so none is lost between a check and a wait. The
 * command gets back the mask and the dispositions that this process was started with.
 */
#include "descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "own_pid.h"
#include "util/clock.h"
#include "util/procfs.h"

#define GRACE      (5 * GPS_SECOND)
#define FIRST_LOOK (GPS_SECOND / 20)
#define LAST_LOOK  GPS_SECOND

struct watch {
    pid_t command;
    bool ended;
    int status;
    sigset_t signals, mask; /* the signals to wait for; the mask before */
    struct sigaction interrupt, quit, child, pipe;
    const struct descendants_look *look;
    uint64_t next_look, pause;
};

/* --- signals --- */

/* In place of the command, when nothing is to be done after its end. */
static const int passed_on[] = {SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, 0};

static void guard(struct watch *watch, enum descendants_patience patience) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    sigemptyset(&watch->signals);
    sigaddset(&watch->signals, SIGCHLD);
    sigaddset(&watch->signals, SIGTERM);
    sigaddset(&watch->signals, SIGHUP);
    for (const int *more = passed_on; patience == DESCENDANTS_NONE && *more; more++)
        sigaddset(&watch->signals, *more);
    sigprocmask(SIG_BLOCK, &watch->signals, &watch->mask);
    sigaction(SIGINT, &ignore, &watch->interrupt);
    sigaction(SIGQUIT, &ignore, &watch->quit);
    sigaction(SIGCHLD, &normal, &watch->child); /* ignored, it would leave no status */
    sigaction(SIGPIPE, &ignore, &watch->pipe);
}

static void unguard(const struct watch *watch) {
    sigaction(SIGINT, &watch->interrupt, NULL);
    sigaction(SIGQUIT, &watch->quit, NULL);
    sigaction(SIGCHLD, &watch->child, NULL);
    sigaction(SIGPIPE, &watch->pipe, NULL);
    sigprocmask(SIG_SETMASK, &watch->mask, NULL);
}

/* --- the command --- */

static void become(const struct watch *watch, char **command, int failed) {
    unguard(watch);
    execvp(command[0], command);
    int error = errno;
    (void)!write(failed, &error, sizeof(error));
    _exit(127);
}

/* The pipe closes at the exec, or brings its error. */
static int start(struct watch *watch, char **command) {
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    watch->command = own_pid_needed() ? own_pid_fork() : fork();
    if (watch->command == 0)
        become(watch, command, ends[1]);
    if (watch->command < 0)
        error = errno;
    close(ends[1]);
    while (error == 0 && read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    return -error;
}

/* Reaps the children that have ended. False: there is no child left. */
static bool reap(struct watch *watch) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != watch->command)
            continue;
        watch->ended = true;
        watch->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return pid == 0;
}

/* A terminal has sent its signals to the command, too. */
static bool is_passed_on(const siginfo_t *info) {
    return info->si_signo == SIGTERM || info->si_signo == SIGHUP ||
           (info->si_signo != SIGCHLD && info->si_code <= 0);
}

/* --- all descendants --- */

struct process {
    uint32_t pid, parent;
    bool descends, zombie;
};

static bool read_process(const char *pid, struct process *process) {
    struct gps_procfs_stat stat;
    *process = (struct process){.pid = (uint32_t)strtoul(pid, NULL, 10)};
    if (gps_procfs_stat(process->pid, &stat) != 0)
        return false;
    process->parent = (uint32_t)stat.parent;
    process->zombie = stat.state == 'Z' || stat.state == 'X';
    return true;
}

/* All processes that /proc shows; malloc'ed. */
static struct process *read_processes(size_t *count) {
    struct process *list = NULL, process;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &process)) {
            list = tool_grow(list, *count, sizeof(*list));
            list[(*count)++] = process;
        }
    if (directory)
        closedir(directory);
    return list;
}

/* Marks one more generation; false: there is none. */
static bool mark_children(struct process *list, size_t count) {
    bool marked = false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && !list[i].descends; j++)
            if (list[i].parent == (uint32_t)getpid() ||
                (list[j].descends && list[j].pid == list[i].parent))
                marked = list[i].descends = true;
    return marked;
}

/* Those that live. Returns how many. */
static size_t each_descendant(const struct descendants_look *look) {
    size_t count = 0, running = 0;
    struct process *list = read_processes(&count);
    while (mark_children(list, count))
        continue;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].descends || list[i].zombie)
            continue;
        running++;
        if (look)
            look->fn(look->arg, list[i].pid);
    }
    free(list);
    return running;
}

/* --- waiting --- */

static uint64_t look_around(struct watch *watch, uint64_t now) {
    if (!watch->look)
        return UINT64_MAX;
    if (now >= watch->next_look) {
        each_descendant(watch->look);
        watch->pause = watch->pause < LAST_LOOK / 2 ? 2 * watch->pause : LAST_LOOK;
        watch->next_look = now + watch->pause;
    }
    return watch->next_look;
}

/* The next signal, or 0 when the time is over. Looks at the descendants meanwhile. */
static int next_signal(struct watch *watch, uint64_t until, siginfo_t *info) {
    for (;;) {
        const uint64_t now = gps_clock_monotonic();
        if (now >= until)
            return 0;
        const uint64_t look = look_around(watch, now), rest = (look < until ? look : until) - now;
        const struct timespec time = {(time_t)(rest / GPS_SECOND), (long)(rest % GPS_SECOND)};
        const int number = sigtimedwait(&watch->signals, info, &time);
        if (number > 0)
            return number;
    }
}

static void await_command(struct watch *watch) {
    while (reap(watch) && !watch->ended) {
        siginfo_t info;
        const int number = next_signal(watch, UINT64_MAX, &info);
        if (is_passed_on(&info))
            kill(watch->command, number);
    }
}

/* False: some are left. A signal that asks this process to end also ends the wait. */
static bool await_others(struct watch *watch) {
    const uint64_t until = gps_clock_monotonic() + GRACE;
    while (reap(watch)) {
        siginfo_t info;
        const int number = next_signal(watch, until, &info);
        if (number == 0 || number == SIGTERM || number == SIGHUP)
            return false;
    }
    return true;
}

int descendants_run(char **command, enum descendants_patience patience,
                    const struct descendants_look *look, struct descendants *descendants) {
    struct watch watch = {
        .look = look, .next_look = gps_clock_monotonic() + FIRST_LOOK, .pause = FIRST_LOOK};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard(&watch, patience);
    int status = start(&watch, command);
    if (status == 0) {
        await_command(&watch);
        *descendants = (struct descendants){watch.status, 0};
        if (patience == DESCENDANTS_ALL && !await_others(&watch))
            descendants->running = each_descendant(NULL);
    }
    unguard(&watch);
    return status;
}
