/*
 * descendants.c - a command and all that it starts, waited for.
 *
 * Signals stay blocked and are taken one by one, so none is lost between a look and a wait; the
 * command gets back the mask and the dispositions that this process was started with.
 */
#include "descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descendant_count.h"

#define SECOND 1000000000

struct watch {
    pid_t command;
    bool ended;
    int status;
    sigset_t signals, mask; /* that are waited for; that was */
    struct sigaction interrupt, quit, child;
};

/* --- signals --- */

static void guard(struct watch *watch) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    sigemptyset(&watch->signals);
    sigaddset(&watch->signals, SIGCHLD);
    sigaddset(&watch->signals, SIGTERM);
    sigaddset(&watch->signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &watch->signals, &watch->mask);
    sigaction(SIGINT, &ignore, &watch->interrupt);
    sigaction(SIGQUIT, &ignore, &watch->quit);
    sigaction(SIGCHLD, &normal, &watch->child); /* ignored, it would leave no status */
}

static void unguard(const struct watch *watch) {
    sigaction(SIGINT, &watch->interrupt, NULL);
    sigaction(SIGQUIT, &watch->quit, NULL);
    sigaction(SIGCHLD, &watch->child, NULL);
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

/* The pipe closes at the exec, or brings what kept it from happening. */
static int start(struct watch *watch, char **command) {
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    watch->command = fork();
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

/* Buries who has ended. False: there is no child left. */
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

static void await_command(struct watch *watch) {
    while (reap(watch) && !watch->ended) {
        int signal_number = sigwaitinfo(&watch->signals, NULL);
        if (signal_number == SIGTERM || signal_number == SIGHUP)
            kill(watch->command, signal_number);
    }
}

/* --- what it left behind --- */

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

/* Who asks this process to end does not want it to wait. */
static bool await_others(struct watch *watch, unsigned grace) {
    const int64_t until = now() + (int64_t)grace * SECOND;
    while (reap(watch)) {
        int64_t left = until - now();
        const struct timespec rest = {left / SECOND, left % SECOND};
        if (left <= 0)
            return false;
        int signal_number = sigtimedwait(&watch->signals, NULL, &rest);
        if (signal_number == SIGTERM || signal_number == SIGHUP)
            return false;
    }
    return true;
}

int descendants_run(char **command, unsigned grace, struct descendants *descendants) {
    struct watch watch = {.ended = false};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    guard(&watch);
    int error = start(&watch, command);
    if (error == 0) {
        await_command(&watch);
        bool all = await_others(&watch, grace);
        *descendants = (struct descendants){watch.status, all ? 0 : count_descendants(getpid())};
    }
    unguard(&watch);
    return error;
}
