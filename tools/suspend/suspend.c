/*
 * suspend.c - `gpushare suspend`: takes processes off the GPU, their memory to main memory.
 *
 * The process first evicts the memory that it shares (shim/suspend); then the driver checkpoints
 * it. A step that fails undoes those before it. From the lock on signals wait, so that Ctrl-C
 * leaves no process half way.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "cli/printable.h"
#include "cli/tool.h"
#include "process/control_group.h"
#include "room.h"
#include "util/clock.h"

enum { OPTION_TIMEOUT, OPTION_ALL_BUT, OPTION_LET_GO, OPTION_KEEP_ON_CARD, OPTION_FORCE };

/* --- progress --- */

struct progress {
    pthread_t thread;
    bool shown;
    _Atomic bool over;
    uint32_t pid;
    uint64_t before, bytes; /* main memory of the process, and the bytes that are added to it */
};

static void *progress_show(void *arg) {
    struct progress *progress = arg;
    while (!progress->over) {
        uint64_t now;
        if (gps_main_memory_of(progress->pid, &now) && now > progress->before)
            fprintf(stderr, "\r%s of %s are in main memory \033[K",
                    printable_size(now - progress->before).text,
                    printable_size(progress->bytes).text);
        usleep(200000);
    }
    fputs("\r\033[K", stderr);
    return NULL;
}

static void begin_progress(struct progress *progress, const struct target *target) {
    *progress = (struct progress){.pid = target->pid, .bytes = target->answer.own};
    progress->shown = isatty(STDERR_FILENO) && gps_main_memory_of(target->pid, &progress->before) &&
                      pthread_create(&progress->thread, NULL, progress_show, progress) == 0;
}

static void end_progress(struct progress *progress) {
    progress->over = true;
    if (progress->shown)
        pthread_join(progress->thread, NULL);
}

/* --- the driver's part --- */

static bool lock_and_take(const struct target *target, uint64_t timeout) {
    struct progress progress;
    enum checkpoint_state state = CHECKPOINT_LOST;
    int code = checkpoint_lock(target->pid, timeout);
    if (code != 0)
        return target_fail(target, "the driver does not lock it", code);
    begin_progress(&progress, target);
    code = checkpoint_take(target->pid);
    end_progress(&progress);
    if (code == 0)
        return true;
    target_fail(target, "the driver does not checkpoint it", code);
    if (checkpoint_state(target->pid, &state) == 0 && state == CHECKPOINT_LOCKED)
        checkpoint_unlock(target->pid);
    else
        tool_error("the driver cannot undo that: %s is lost, and can only be ended", target->name);
    return false;
}

static bool runs(const struct target *target) {
    enum checkpoint_state state;
    if (!target_state(target, &state))
        return false;
    if (state == CHECKPOINT_RUNS)
        return true;
    return tool_error("%s %s; see: gpushare resume", target->name,
                      state == CHECKPOINT_LOST ? "is lost, and can only be ended"
                      : state == CHECKPOINT_LOCKED
                          ? "is locked by another tool, or one that has died"
                          : "is suspended already, by another tool");
}

/* --- one process --- */

/* To spare: for memory that is not counted, and for the pinned memory that the copy takes. */
enum { MARGIN = 64 /* a 64th */, STAGES = 128 << 20 };

static bool target_has_main_memory(const struct target *target) {
    uint64_t left;
    if (!gps_main_memory_left(target->pid, &left))
        return tool_error("%s was not suspended: how much main memory is left is not known",
                          target->name);
    left += target->answer.kept;
    if (left >= target->answer.own + target->answer.own / MARGIN + STAGES)
        return true;
    return tool_error(
        "%s was not suspended: it has %s on the GPU, and %s of main memory are left for it",
        target->name, printable_size(target->answer.own).text, printable_size(left).text);
}

static bool may_evict(struct target *target, bool alone) {
    if (!target_order(target, GPS_ORDER_CHECK, 0, 0))
        return false;
    if (*target->answer.reason)
        return tool_error("%s cannot be suspended: %s", target->name, target->answer.reason);
    return (alone || runs(target)) && target_has_main_memory(target);
}

static bool target_evict(struct target *target, uint64_t timeout) {
    if (!target_order(target, GPS_ORDER_LET_GO, timeout, 0))
        return false;
    if (target->answer.state == GPS_ANSWER_GONE)
        return true;
    return tool_error("%s was not suspended, and runs on: %s", target->name, target->answer.reason);
}

/* The free memory of the GPU before and after, and how much of the process's own has left it: the
 * known bytes, or more, if more has become free. */
struct left {
    uint64_t before, after, bytes;
    bool known;
};

static void left_measure(const struct target *target, struct left *left) {
    left->bytes = target->answer.own;
    left->known = left->known && room_now(target, &left->after);
    const uint64_t shared = target->answer.offloaded;
    if (left->known && left->after > left->before + shared &&
        left->after - left->before - shared > left->bytes)
        left->bytes = left->after - left->before - shared;
}

static void suspend_say(const struct target *target, const struct left *left, bool alone) {
    if (alone) {
        printf("%s has let go of %s of shared memory, and its calls wait; "
               "`gpushare resume --take-again %u` ends that.\n",
               target->name, printable_size(target->answer.evicted).text, target->pid);
        return;
    }
    printf("%s is suspended: %s have left the GPU, ", target->name,
           printable_size(left->bytes).text);
    if (target->answer.kept)
        printf("%s were copied for that, ", printable_size(target->answer.copied).text);
    printf("and it has let go of %s of shared memory.",
           printable_size(target->answer.evicted).text);
    if (target->answer.offloaded)
        printf(" Of that %s have left the GPU, too: nobody else runs with them.",
               printable_size(target->answer.offloaded).text);
    if (left->known)
        printf(" %s are free on the GPU.", printable_size(left->after).text);
    printf("\n");
}

/* The evicted memory is taken again where the driver's part fails. Before that begins the process
 * is told to stay as it is: if this tool is killed then, the driver goes on, and memory that a
 * process imports meanwhile is lost in its restore (H200, driver 580.159.04, 2026-11-29: 400). */
static bool take_off(struct target *target, uint64_t timeout, bool alone) {
    struct left left = {.known = !alone && room_now(target, &left.before)};
    const bool orders = target->takes_orders, gone = target->answer.state == GPS_ANSWER_GONE;
    if (orders && !gone && !target_evict(target, timeout))
        return false;
    if (orders && !target_order(target, GPS_ORDER_KEEP, timeout, 0))
        return false;
    if (!alone && !lock_and_take(target, timeout)) {
        if (orders && target_order(target, GPS_ORDER_TAKE, timeout, 0))
            tool_error("%s runs on as before", target->name);
        return false;
    }
    left_measure(target, &left);
    if (orders && !alone && !target_order(target, GPS_ORDER_KEEP, timeout, left.bytes))
        return false;
    suspend_say(target, &left, alone);
    return true;
}

/* Whether it is suspended: its memory is evicted, and the driver has it, which --let-go omits. */
static bool is_done(const struct target *target, bool alone) {
    enum checkpoint_state state;
    return target->answer.state == GPS_ANSWER_GONE &&
           (alone || checkpoint_state(target->pid, &state) != 0 || state != CHECKPOINT_RUNS);
}

static bool suspend_known(struct target *target, const struct targets_how *how) {
    if (is_done(target, how->alone)) {
        printf("%s is suspended already.\n", target->name);
        return true;
    }
    if (!target_open(target))
        return false;
    target->flags = how->keep_on_gpu ? GPS_ORDER_KEEP_ON_GPU : 0;
    const bool alone = how->alone;
    const bool done = room_book_memory(target, how->timeout) && may_evict(target, alone) &&
                      take_off(target, how->timeout, alone);
    target_close(target);
    room_free(target);
    return done;
}

static bool suspend_stranger(struct target *target, const struct targets_how *how) {
    if (how->alone)
        tool_error("%s does not run with suspend = on, so it cannot let go of what it shares",
                   target->name);
    return !how->alone && runs(target) && take_off(target, how->timeout, false);
}

static bool suspend_one(struct target *target, const struct targets_how *how) {
    sigset_t asked, before;
    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    sigaddset(&asked, SIGHUP);
    sigprocmask(SIG_BLOCK, &asked, &before);
    const bool done =
        target->takes_orders ? suspend_known(target, how) : suspend_stranger(target, how);
    fflush(stdout);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* --- the verb --- */

static int run_suspend(const struct tool_args *args) {
    struct targets_how how = {.verb = "suspend",
                              .done = "suspended",
                              .within = args->values[OPTION_TIMEOUT],
                              .all_but = args->values[OPTION_ALL_BUT],
                              .force = args->values[OPTION_FORCE],
                              .alone = args->values[OPTION_LET_GO],
                              .keep_on_gpu = args->values[OPTION_KEEP_ON_CARD]};
    return targets_each(args, &how, suspend_one);
}

const struct tool_verb tool_verb_suspend = {
    .name = "suspend",
    .operands = "[PID|PROGRAM...]",
    .summary = "take programs off the GPU, and keep them",
    .details =
        "What a process has for itself on the GPU goes into its main memory, and its "
        "calls wait until `gpushare resume`. What it shares stays with the keeper, which "
        "has to have confirmed it; merged memory that nobody else runs with leaves the GPU, "
        "too, once for all who have it. The process must have been started with suspend = on. "
        "What cannot be let go of is a refusal that names it, and the process runs on; "
        "`gpushare doctor --pid PID` tells it at any time. A step that fails undoes those "
        "before it.\n\n"
        "It takes a driver from version 570 on.\n\n"
        "SIGTERM waits for the resume if the program's handler leaves it to its main loop: "
        "a service resumes it before it stops it.\n\n"
        "Of several, as all processes of a PROGRAM, each is suspended for itself. The "
        "exit status is 1 where a process was not suspended; one that is suspended "
        "already is said to be so.\n",
    .options = {{"timeout", 't', "TIME", "how long calls and work under way may take to end (30s)"},
                {"all-but", 0, "PROGRAM", "all that have suspend = on, but this program"},
                {"let-go", 0, NULL,
                 "only let go of what is shared, for another tool that checkpoints"},
                {"keep-on-card", 0, NULL,
                 "leave merged memory that only suspended programs have on the GPU"},
                {"force", 0, NULL,
                 "a PID may be one without suspend = on, or without gpushare: only the driver is "
                 "asked; if it shares it is lost"}},
    .operands_max = 1 << 20,
    .run = run_suspend,
};
