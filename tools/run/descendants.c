/*
 * descendants.c - runs a command, and waits for it and for all that it starts.
 *
 * Signals stay blocked and are taken one by one, so none is lost between a check and a wait. The
 * command gets back the mask and the dispositions that this process was started with.
 */
#include "descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "own_pid.h"
#include "process_tree.h"
#include "util/clock.h"

#define GRACE      (5 * GPS_SECOND)
#define FIRST_LOOK (GPS_SECOND / 20)
#define LAST_LOOK  GPS_SECOND
#define EVENT_LOOK                                                                                 \
    (GPS_SECOND / 100)        /* after an event, and between looks, however many there are */
#define TELL_AFTER GPS_SECOND /* most programs have ended by then */
#define NAMED_MAX  8

struct watch {
    enum descendants_patience patience;
    pid_t command;
    bool ended, interrupted;
    int status;
    sigset_t signals, mask; /* the signals to wait for; the mask before */
    struct sigaction interrupt, quit, child, pipe;
    const struct descendants_look *look;
    uint64_t next_look, pause;
    uint64_t tell; /* when it is said who goes on after a Ctrl-C */
};

/* --- signals --- */

static const int signals[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, 0};
/* In place of the command, when nothing is to be done after its end. */
static const int passed_on[] = {SIGQUIT, SIGUSR1, SIGUSR2, 0};

static void add_signals(sigset_t *set, const int *numbers) {
    for (; *numbers; numbers++)
        sigaddset(set, *numbers);
}

/* Whether its events send SIGIO. Those that were sent are forgotten. */
static void set_events(const struct watch *watch, bool on) {
    if (!watch->look || watch->look->events < 0)
        return;
    fcntl(watch->look->events, F_SETOWN, getpid());
    fcntl(watch->look->events, F_SETFL, O_NONBLOCK | (on ? O_ASYNC : 0));
    signal(SIGIO, signal(SIGIO, SIG_IGN));
}

static void guard(struct watch *watch) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    sigemptyset(&watch->signals);
    add_signals(&watch->signals, signals);
    if (watch->patience == DESCENDANTS_NONE)
        add_signals(&watch->signals, passed_on);
    if (watch->look)
        sigaddset(&watch->signals, SIGIO);
    sigprocmask(SIG_BLOCK, &watch->signals, &watch->mask);
    sigaction(SIGINT, &ignore, &watch->interrupt);
    sigaction(SIGQUIT, &ignore, &watch->quit);
    sigaction(SIGCHLD, &normal, &watch->child); /* ignored, it would leave no status */
    sigaction(SIGPIPE, &ignore, &watch->pipe);
    set_events(watch, true);
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
static bool is_passed_on(const struct watch *watch, const siginfo_t *info) {
    const int number = info->si_signo;
    return number == SIGTERM || number == SIGHUP ||
           (watch->patience == DESCENDANTS_NONE && number != SIGCHLD && info->si_code <= 0);
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
    char *name = process_tree_name(pid);
    tool_list(&names->list, "%s (pid %" PRIu32 ")", name, pid);
    free(name);
}

static void tell_who_goes_on(const struct watch *watch) {
    struct names names = {NULL, 0};
    char more[48] = "";
    process_tree_each(add_name, &names);
    if (names.count > NAMED_MAX)
        snprintf(more, sizeof(more), " and %zu more", names.count - NAMED_MAX);
    if (names.count > 0 && watch->ended)
        tool_warn("waiting up to %d s for what goes on after Ctrl-C: %s%s; a second Ctrl-C ends "
                  "the waiting",
                  (int)(GRACE / GPS_SECOND), names.list, more);
    else if (names.count > 0)
        tool_warn("waiting for what goes on after Ctrl-C: %s%s; Ctrl-\\ or kill %d may end the "
                  "command",
                  names.list, more, (int)watch->command);
    free(names.list);
}

static void note_interrupt(struct watch *watch) {
    if (!watch->interrupted)
        watch->tell = gps_clock_monotonic() + TELL_AFTER;
    watch->interrupted = true;
}

/* --- waiting --- */

static void look_around(struct watch *watch, uint64_t now) {
    watch->pause = watch->pause < LAST_LOOK / 2 ? 2 * watch->pause : LAST_LOOK;
    watch->next_look = now + watch->pause;
    process_tree_each(watch->look->fn, watch->look->arg);
}

/* There is something to look at soon, and then as at the start. */
static void note_event(struct watch *watch) {
    char events[4096];
    while (read(watch->look->events, events, sizeof(events)) > 0)
        continue;
    const uint64_t soon = gps_clock_monotonic() + EVENT_LOOK;
    if (soon < watch->next_look)
        watch->next_look = soon;
    watch->pause = EVENT_LOOK;
}

/* Does what is due. The time of what is due next. */
static uint64_t attend(struct watch *watch, uint64_t now) {
    if (watch->look && now >= watch->next_look)
        look_around(watch, now);
    if (now >= watch->tell) {
        watch->tell = UINT64_MAX;
        tell_who_goes_on(watch);
    }
    return watch->tell < watch->next_look ? watch->tell : watch->next_look;
}

/* The next signal, or 0 when the time is over. Looks at the descendants meanwhile. */
static int next_signal(struct watch *watch, uint64_t until, siginfo_t *info) {
    for (;;) {
        const uint64_t now = gps_clock_monotonic();
        if (now >= until)
            return 0;
        const uint64_t next = attend(watch, now), end = next < until ? next : until;
        const uint64_t rest = end > now ? end - now : 0;
        const struct timespec time = {(time_t)(rest / GPS_SECOND), (long)(rest % GPS_SECOND)};
        const int number = sigtimedwait(&watch->signals, info, &time);
        if (number == SIGIO)
            note_event(watch);
        else if (number > 0)
            return number;
    }
}

static void await_command(struct watch *watch) {
    while (reap(watch) && !watch->ended) {
        siginfo_t info;
        const int number = next_signal(watch, UINT64_MAX, &info);
        if (number == SIGINT && watch->patience == DESCENDANTS_ALL)
            note_interrupt(watch);
        if (is_passed_on(watch, &info))
            kill(watch->command, number);
    }
}

/* False: some are left. A signal that asks this process to end also ends the wait, as does a second
 * Ctrl-C. */
static bool await_others(struct watch *watch) {
    const uint64_t now = gps_clock_monotonic(), until = now + GRACE;
    if (watch->interrupted)
        watch->tell = now + TELL_AFTER;
    while (reap(watch)) {
        siginfo_t info;
        const int number = next_signal(watch, until, &info);
        if (number == 0 || number == SIGTERM || number == SIGHUP ||
            (number == SIGINT && watch->interrupted))
            return false;
        if (number == SIGINT)
            note_interrupt(watch);
    }
    return true;
}

int descendants_run(char **command, enum descendants_patience patience,
                    const struct descendants_look *look, struct descendants *descendants) {
    struct watch watch = {.patience = patience,
                          .look = look,
                          .next_look = look ? gps_clock_monotonic() + FIRST_LOOK : UINT64_MAX,
                          .pause = FIRST_LOOK,
                          .tell = UINT64_MAX};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard(&watch);
    int status = start(&watch, command);
    if (status == 0) {
        await_command(&watch);
        *descendants = (struct descendants){watch.status, 0};
        if (patience == DESCENDANTS_ALL && !await_others(&watch))
            descendants->running = process_tree_each(NULL, NULL);
    }
    set_events(&watch, false);
    unguard(&watch);
    return status;
}
