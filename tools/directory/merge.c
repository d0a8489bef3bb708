/*
 * merge.c - `gpushare merge`: stops merging in a process that runs, and resumes it.
 *
 * The order is a file beside the process's own (directory/orders.h). Its merger looks once a second
 * and publishes what it has seen, for which this waits.
 */
#include <sys/stat.h>

#include "cli/tool.h"
#include "directory/orders.h"
#include "find_process.h"
#include "util/clock.h"
#include "view_format.h"

#define LONGEST (5 * GPS_SECOND) /* until it has looked; a swap can be under way */
#define PAUSE   50000            /* us, between two looks */

/* Whether a merge rule has taken memory of the process. */
static bool has_rule(const struct view *view, const struct gps_owner *owner) {
    TOOL_EACH(const struct view_hold, hold, view->holds, view->hold_count) {
        const uint32_t via = hold->slot.via;
        if (gps_owner_equal(&hold->owner, owner) &&
            (via == GPS_VIA_MERGE || via == GPS_VIA_OWN || via == GPS_VIA_NOT_MERGING ||
             (hold->region && view_merged(hold->region))))
            return true;
    }
    return false;
}

/* Waits until the process says that it has followed. False: it did not. */
static bool merge_order_await(const struct gps_owner *owner, bool off) {
    const uint64_t until = gps_clock_monotonic() + LONGEST;
    bool followed = false;
    while (!followed && gps_clock_monotonic() < until) {
        struct view view;
        if (!view_read(&view))
            return false;
        const struct gps_slot *slot = view_not_merging(&view, owner);
        followed = (slot && slot->address == GPS_NOT_MERGING_PAUSED) == off;
        view_free(&view);
        if (!followed)
            usleep(PAUSE);
    }
    return followed;
}

static bool merge_order_process(const struct view *view, const struct gps_owner *owner, bool off) {
    const struct printable name = view_format_program(view, owner);
    if (!has_rule(view, owner))
        return tool_error("no merge rule has taken memory of %s (role = merge)", name.text);
    const int status = gps_paused_set(&view->store, owner, off);
    if (status < 0)
        return tool_error("cannot tell %s: %s", name.text, strerror(-status));
    if (!merge_order_await(owner, off))
        return tool_error("%s has not answered; it will follow when it does", name.text);
    printf(off ? "Merging is off in %s. What is merged stays merged.\n" : "Merging is on in %s.\n",
           name.text);
    return true;
}

/* Says why there is no such process. */
static void merge_refuse_pid(const char *pid) {
    TOOL_TEMP char *path = tool_format("/proc/%s", pid);
    struct stat info;
    if (strspn(pid, "0123456789") != strlen(pid) || stat(path, &info) != 0)
        tool_error("no process has the pid or the name '%s'; see: gpushare ls", pid);
    else if (info.st_uid != geteuid())
        tool_error("process %s is of another user (uid %u), who alone may say this", pid,
                   info.st_uid);
    else
        tool_error("process %s is not known here: it runs without gpushare, or shares nothing as "
                   "yet; see: gpushare doctor",
                   pid);
}

static bool order_pid(const char *pid, bool off) {
    struct view view;
    bool any = false, good = true;
    if (!view_read(&view))
        return false;
    if (find_process(&view, pid, process_has_pid) == 0 &&
        find_process(&view, pid, process_has_program) == 0)
        find_process(&view, pid, process_has_pid_here);
    for (size_t i = 0; i < view.process_count; i++)
        if (view.processes[i].found && view.processes[i].alive) {
            any = true;
            good &= merge_order_process(&view, &view.processes[i].owner, off);
        }
    if (!any)
        merge_refuse_pid(pid);
    view_free(&view);
    return any && good;
}

static int run_merge(const struct tool_args *args) {
    const char *word = args->operands[0];
    const bool off = strcmp(word, "off") == 0;
    bool good = true;
    if (!off && strcmp(word, "on") != 0) {
        tool_error("'%s' is neither off nor on; see: gpushare merge --help", word);
        return TOOL_USAGE;
    }
    for (int i = 1; i < args->operand_count; i++)
        good &= order_pid(args->operands[i], off);
    return good ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_merge = {
    .name = "merge",
    .operands = "off|on PID|PROGRAM...",
    .summary = "stop merging in a process that runs, or resume it",
    .details = "After `off` nothing more of the process is merged, until `on` or until it ends. "
               "What is merged stays merged, and becomes private when the program writes it, as "
               "ever. The process follows within a second or so, and this waits for it, for 5 "
               "seconds at most.\n"
               "ls, show and top tell where it is off. A PID, or the name of a PROGRAM, is as for "
               "`gpushare show`.\n"
               "The exit status is 1 for a process that no merge rule has taken memory of, that "
               "is of another user or without gpushare, or that does not answer.\n",
    .operands_min = 2,
    .operands_max = 1 << 20,
    .run = run_merge,
};
