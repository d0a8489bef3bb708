/*
 * own_pid.c - see own_pid.h.
 *
 * A program comes into the directory with its first shared memory, not when it starts. So each
 * `gpushare run` locks the byte of its program's pid in a file there, for as long as it lives.
 * A user who may choose pids draws one at random. Any other gets the next one, so a random number
 * of pids is passed over first: then most containers that start together need one try.
 */
#include "own_pid.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "directory/file.h"
#include "directory/processes.h"
#include "directory/view.h"
#include "util/clock.h"

#define TIMEOUT    GPS_SECOND
#define HOST_SPACE 0xEFFFFFFC /* the inode of the machine's own pid namespace */

enum { FIRST = 300, LAST = 32767, DRAWS = 16, PASSED_OVER = 256 };

static uint64_t pid_space(void) {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

/* --- the pids that are taken --- */

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

static bool is_taken(pid_t pid) {
    struct wanted wanted = {pid, pid_space(), false};
    struct view_place place;
    struct gps_store store;
    view_place_get(&place);
    if (view_store(&place, false, &store) == 0)
        gps_proc_each(&store, note_taken, &wanted);
    return wanted.taken;
}

/* False: the program of another `gpushare run` has it. */
static bool claim(pid_t pid) {
    static int held = -1;
    char path[GPS_FILE_PATH];
    struct view_place place;
    struct gps_store store;
    if (held >= 0)
        gps_file_close_locked(held);
    view_place_get(&place);
    if (view_store(&place, true, &store) != 0)
        return true;
    gps_file_path(&store, GPS_PIDS, NULL, path);
    held = gps_file_open_locked(path, O_CREAT, pid, 1);
    return held != -EAGAIN;
}

static bool is_free(pid_t pid) {
    return !is_taken(pid) && claim(pid);
}

bool own_pid_needed(void) {
    const uint64_t space = pid_space();
    return space != 0 && (space != HOST_SPACE || is_taken(getpid()));
}

/* --- one's own --- */

static unsigned draw(unsigned below) {
    unsigned number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = (unsigned)gps_clock_monotonic();
    return number % below;
}

/* Forks a child with this pid. -1 and EPERM: this user may not choose; EEXIST: a process has it. */
static pid_t fork_as(pid_t pid) {
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static pid_t fork_drawn(void) {
    pid_t child = -1;
    errno = EEXIST;
    for (int i = 0; i < DRAWS && child < 0 && errno == EEXIST; i++) {
        const pid_t pid = (pid_t)(FIRST + draw(LAST - FIRST));
        if (is_free(pid))
            child = fork_as(pid);
    }
    return child;
}

/* Forks a child, which waits until its pid has been checked. -1 and EAGAIN: the pid is taken, and
 * the child has ended. */
static pid_t fork_next(void) {
    int ends[2];
    char word = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0 && (close(ends[1]), read(ends[0], &word, 1) != 1))
        _exit(0);
    const bool kept = child > 0 && is_free(child) && write(ends[1], &word, 1) == 1;
    close(ends[0]);
    if (child == 0)
        return 0;
    close(ends[1]);
    if (child > 0 && !kept) {
        waitpid(child, NULL, 0);
        errno = EAGAIN;
    }
    return kept ? child : -1;
}

static void pass_over(unsigned count, uint64_t until) {
    while (count-- > 0 && gps_clock_monotonic() < until) {
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
}

pid_t own_pid_fork(void) {
    const uint64_t until = gps_clock_monotonic() + TIMEOUT;
    pid_t child = fork_drawn();
    if (child >= 0)
        return child;
    pass_over(draw(PASSED_OVER), until - TIMEOUT / 2);
    do
        child = fork_next();
    while (child < 0 && errno == EAGAIN && gps_clock_monotonic() < until);
    if (child >= 0 || errno != EAGAIN)
        return child;
    tool_warn("no pid was found that no other process in %s has; events of processes with the same "
              "pid, and memory "
              "that is not exported under gpushare, cannot be opened",
              tool_or(getenv("GPUSHARE_DIR"), "the directory"));
    return fork();
}
