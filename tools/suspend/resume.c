/*
 * resume.c - `gpushare resume`: brings suspended processes back to the GPU.
 *
 * It ends every state in which `suspend` may have left a process, also if that tool was killed. The
 * driver loses a process for good that it restores without room, so the bytes are counted first.
 */

#include "cli/tool.h"
#include "room.h"

enum { OPTION_TIMEOUT, OPTION_WAIT, OPTION_ALL_BUT, OPTION_TAKE_AGAIN, OPTION_FORCE };

/* --- the driver's part --- */

static bool lost(const struct target *target) {
    return tool_error("the driver has lost %s: it can only be ended, and started again",
                      target->name);
}

static bool restore(struct target *target, const struct targets_how *how) {
    if (!room_take(target, how))
        return false;
    const int code = checkpoint_restore(target->pid);
    if (code == 0)
        return true;
    room_give(target, how);
    target_fail(target, "the driver does not restore it", code);
    return lost(target);
}

static bool resume_unlock(const struct target *target) {
    const int code = checkpoint_unlock(target->pid);
    return code == 0 || target_fail(target, "the driver does not unlock it", code);
}

/* *any: the process was not running. */
static bool bring_back(struct target *target, const struct targets_how *how, bool *any) {
    enum checkpoint_state state;
    if (!target_state(target, &state))
        return false;
    *any = state != CHECKPOINT_RUNS;
    switch (state) {
    case CHECKPOINT_RUNS:
        return true;
    case CHECKPOINT_AWAY:
        return restore(target, how) && resume_unlock(target);
    case CHECKPOINT_LOCKED:
        return resume_unlock(target);
    default:
        return lost(target);
    }
}

/* --- one process --- */

/* For --take-again: whether another tool has restored it. Calls no driver without checkpoints. */
static bool is_restored(const struct target *target) {
    enum checkpoint_state state;
    if (checkpoint_open() || checkpoint_state(target->pid, &state) != 0 || state == CHECKPOINT_RUNS)
        return true;
    return tool_error(
        "%s is not restored by the driver yet; whoever has checkpointed it is to do that "
        "first, or resume it without --take-again",
        target->name);
}

static bool resume_one(struct target *target, const struct targets_how *how) {
    bool any = false;
    if (target->takes_orders && !target_open(target))
        return false;
    const bool gone = target->takes_orders && target->answer.state != GPS_ANSWER_RUNS;
    const bool back = how->alone ? is_restored(target) : bring_back(target, how, &any);
    const bool done = back && (!gone || target_order(target, GPS_ORDER_TAKE, how->timeout, 0));
    target_close(target);
    room_free(target);
    if (done)
        printf(gone || any ? "%s is resumed.\n" : "%s is not suspended.\n", target->name);
    return done;
}

/* --- the verb --- */

static int run_resume(const struct tool_args *args) {
    struct targets_how how = {.verb = "resume",
                              .done = "resumed",
                              .within = args->values[OPTION_TIMEOUT],
                              .all_but = args->values[OPTION_ALL_BUT],
                              .force = args->values[OPTION_FORCE],
                              .wait = args->values[OPTION_WAIT],
                              .alone = args->values[OPTION_TAKE_AGAIN]};
    return targets_each(args, &how, resume_one);
}

const struct tool_verb tool_verb_resume = {
    .name = "resume",
    .operands = "[PID|PROGRAM...]",
    .summary = "bring suspended programs back to the GPU",
    .details = "The driver loses a process for good that it restores without room, so what the "
               "process needs is counted first: where it is not free the process stays "
               "suspended. Then its memory is where it was, what it shares is mapped again, and "
               "its calls go on. It also ends a state in which a `gpushare suspend` that was "
               "killed has left a process.\n"
               "Shared memory that is gone ends the process with a report.\n"
               "The exit status is 1 where a process was not resumed; one that is not suspended "
               "is said not to be.\n",
    .options = {{"timeout", 't', "TIME", "how long it may take to map what is shared again (30s)"},
                {"wait", 'w', NULL, "wait for room"},
                {"all-but", 0, "PROGRAM", "all that have suspend = on, but this program"},
                {"take-again", 0, NULL,
                 "only take again what --let-go let go of, after another tool's restore"},
                {"force", 0, NULL, "a PID may be one without suspend = on, or without gpushare"}},
    .operands_max = 1 << 20,
    .run = run_resume,
};
