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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "directory/file.h"
#include "directory/processes.h"
#include "directory/view.h"
#include "util/clock.h"
#include "util/procfs.h"

#define TIMEOUT    GPS_SECOND
#define HOST_SPACE 0xEFFFFFFC /* the inode of the machine's own pid namespace */

enum { FIRST = 300, LAST = 32767, PASSED_OVER = 256 };

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
    struct wanted wanted = {pid, gps_procfs_pid_ns(), false};
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
    held = -1;
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
    const uint64_t space = gps_procfs_pid_ns();
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

/* Whether the child is the one: a pid that is not passed over, and that is free. Any other child
 * ends. */
static bool keeps(pid_t child, unsigned *passed_over) {
    if (*passed_over == 0 && is_free(child))
        return true;
    *passed_over -= *passed_over > 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return false;
}

pid_t own_pid_fork(void) {
    const uint64_t begin = gps_clock_monotonic();
    unsigned passed_over = 0;
    bool chosen = true;
    for (uint64_t now = begin; now < begin + TIMEOUT; now = gps_clock_monotonic()) {
        const pid_t child = chosen ? fork_as((pid_t)(FIRST + draw(LAST - FIRST))) : fork();
        if (child == 0 || (child > 0 && keeps(child, &passed_over)))
            return child;
        if (child < 0 && !chosen)
            return child;
        if (child < 0 && errno != EEXIST) {
            chosen = false;
            passed_over = draw(PASSED_OVER);
        }
        if (now >= begin + TIMEOUT / 2)
            passed_over = 0;
    }
    tool_warn("no pid was found that no other process in %s has; events of processes with the same "
              "pid, and memory "
              "that is not exported under gpushare, cannot be opened",
              tool_or(getenv("GPUSHARE_DIR"), "the directory"));
    return fork();
}
