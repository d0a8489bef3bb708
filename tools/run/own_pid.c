/*
 * own_pid.c - see own_pid.h.
 *
 * Only a user who may choose pids gets one that is surely free: a random number, so that containers
 * that start together need one try.
 */
#include "own_pid.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/tool.h"
#include "directory/processes.h"
#include "directory/view.h"
#include "util/clock.h"
#include "util/procfs.h"

#define HOST_SPACE 0xEFFFFFFC /* the inode of the machine's own pid namespace */

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

static bool is_taken(pid_t pid) {
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
    return space != 0 && (space != HOST_SPACE || is_taken(getpid()));
}

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

pid_t own_pid_fork(void) {
    for (unsigned tries = 0; tries < TRIES; tries++) {
        const pid_t pid = (pid_t)(FIRST + draw(LAST - FIRST));
        if (is_taken(pid))
            continue;
        const pid_t child = fork_as(pid);
        if (child >= 0)
            return child;
        if (errno != EEXIST)
            break;
    }
    const pid_t child = fork();
    if (child > 0 && is_taken(child))
        tool_warn("a process of another container is process %d, too, so neither can open events "
                  "of the other, or memory that is not exported under gpushare; let gpushare run "
                  "choose the pid (--cap-add CHECKPOINT_RESTORE), or give both containers one pid "
                  "namespace (--pid)",
                  (int)child);
    return child;
}
