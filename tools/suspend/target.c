#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/value.h"
#include "directory/file.h"
#include "directory/find_process.h"
#include "directory/lease.h"
#include "directory/orders.h"
#include "directory/view_format.h"
#include "run/descendants.h"
#include "util/clock.h"

#define WHILE (20 * GPS_SECOND) /* a keeper that has to start, and a machine that is busy */
#define PAUSE 5000              /* us, between two looks */

struct targets {
    struct target *list;
    size_t count;
};

/* --- finding --- */

static void add_stranger(struct targets *targets, uint32_t pid) {
    TOOL_TEMP char *name = descendants_name(pid);
    TOOL_APPEND(targets->list, targets->count,
                (struct target){.pid = pid, .name = tool_format("%s %u", name, pid), .order = -1});
}

static bool add_found(struct targets *targets, const struct view *view) {
    const size_t before = targets->count;
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *process = &view->processes[i];
        if (!process->found || !process->alive || !process->takes_orders)
            continue;
        const uint32_t here = host_pid(&process->owner);
        struct target target = {.store = view->store,
                                .owner = process->owner,
                                .answer = process->answer,
                                .pid = here ? here : process->owner.pid,
                                .takes_orders = true,
                                .name = tool_copy(view_format_program(view, &process->owner).text),
                                .order = -1};
        TOOL_APPEND(targets->list, targets->count, target);
    }
    return targets->count > before;
}

static bool find(struct targets *targets, struct view *view, const char *text) {
    process_match_fn *const ways[] = {process_has_pid, process_has_pid_here, process_has_program};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (find_process(view, text, ways[i]) > 0 && add_found(targets, view))
            return true;
    return false;
}

/* A process that takes no orders, or none at all. */
static bool find_stranger(struct targets *targets, const char *text, bool force) {
    const bool is_pid = text[strspn(text, "0123456789")] == '\0' && *text;
    TOOL_TEMP char *path = tool_format("/proc/%s", text);
    struct stat info;
    if (!is_pid) {
        tool_error("no program named '%s' runs with suspend = on; see: gpushare ls", text);
    } else if (stat(path, &info) != 0) {
        tool_error("no process has the pid '%s'; see: gpushare ls", text);
    } else if (info.st_uid != geteuid()) {
        tool_error("process %s is of another user (uid %u), who alone may say this", text,
                   info.st_uid);
    } else if (!force) {
        tool_error("process %s does not run with suspend = on, so it cannot let go of what it "
                   "shares. With --force only the driver is asked: if it shares any memory, it is "
                   "lost",
                   text);
    } else {
        add_stranger(targets, (uint32_t)strtoul(text, NULL, 10));
        return true;
    }
    return false;
}

static void find_all_but(struct targets *targets, struct view *view, const char *program) {
    for (size_t i = 0; i < view->process_count; i++)
        view->processes[i].found = strcmp(view->processes[i].owner.command, program) != 0;
    add_found(targets, view);
}

/* False: one was not found, and it was said why. */
static bool find_all(char **operands, const struct targets_how *how, struct targets *targets) {
    struct view view;
    bool all = true;
    *targets = (struct targets){.list = NULL};
    if (!view_read(&view))
        return false;
    for (; *operands; operands++)
        if (!find(targets, &view, *operands))
            all &= find_stranger(targets, *operands, how->force);
    if (how->all_but)
        find_all_but(targets, &view, how->all_but);
    view_free(&view);
    return all;
}

static void free_all(struct targets *targets) {
    for (size_t i = 0; i < targets->count; i++) {
        target_close(&targets->list[i]);
        free(targets->list[i].name);
    }
    free(targets->list);
}

/* --- all of them --- */

static bool parse(const struct tool_args *args, struct targets_how *how) {
    const char *within = tool_or(how->within, "30s");
    if (!gps_parse_duration(within, &how->timeout) || how->timeout == 0)
        tool_error("--timeout '%s' is no time to wait; allowed: 500ms, 30s, 2min ...", within);
    else if ((args->operand_count == 0) == !how->all_but)
        tool_error("name processes, or --all-but PROGRAM; see: gpushare %s --help", how->verb);
    else
        return true;
    return false;
}

int targets_each(const struct tool_args *args, struct targets_how *how, target_fn *fn) {
    struct targets targets;
    if (!parse(args, how))
        return TOOL_USAGE;
    bool good = find_all(args->operands, how, &targets);
    const char *why = how->alone || targets.count == 0 ? NULL : checkpoint_open();
    if (why)
        tool_error("%s", why);
    for (size_t i = 0; !why && i < targets.count; i++) {
        targets.list[i].done = how->done;
        good &= fn(&targets.list[i], how);
        fflush(stdout);
    }
    free_all(&targets);
    return good && !why ? TOOL_OK : TOOL_FAILED;
}

bool target_fail(const struct target *target, const char *step, int code) {
    tool_error("%s was not %s: %s: error %d (%s)", target->name, target->done, step, code,
               checkpoint_meaning(code));
    return false;
}

bool target_state(const struct target *target, enum checkpoint_state *state) {
    const int code = checkpoint_state(target->pid, state);
    return code == 0 || target_fail(target, "the driver does not know it", code);
}

/* --- orders --- */

bool target_open(struct target *target) {
    target->order = gps_order_open(&target->store, &target->owner);
    if (target->order == -EAGAIN)
        tool_error("another gpushare suspends or resumes %s just now", target->name);
    else if (target->order < 0)
        tool_error("cannot tell %s: %s", target->name, strerror(-target->order));
    return target->order >= 0;
}

void target_close(struct target *target) {
    if (target->order >= 0)
        gps_file_close_locked(target->order);
    target->order = -1;
}

/* It has answered this order, and is not at it any more. */
static bool is_answered(struct target *target, uint64_t serial) {
    struct gps_answer_file answer;
    if (gps_answer_read(&target->store, &target->owner, &answer) < 0)
        return false;
    target->answer = answer;
    return answer.serial == serial && answer.state != GPS_ANSWER_LEAVES &&
           answer.state != GPS_ANSWER_TAKES;
}

static bool await(struct target *target, uint64_t serial, uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout + WHILE;
    while (!is_answered(target, serial)) {
        if (gps_lease_probe(&target->store, &target->owner) == GPS_DEAD) {
            tool_error("%s has ended", target->name);
            return false;
        }
        if (gps_clock_monotonic() > until) {
            tool_error("%s has not answered in time%s%s", target->name,
                       *target->answer.reason ? ": " : "", target->answer.reason);
            return false;
        }
        usleep(PAUSE);
    }
    return true;
}

bool target_order(struct target *target, enum gps_order_ask ask, uint64_t timeout, uint64_t freed) {
    struct gps_order order = {
        .ask = ask, .serial = gps_random() | 1, .timeout = timeout, .freed = freed};
    const int status = gps_order_write(target->order, &order);
    if (status < 0) {
        tool_error("cannot tell %s: %s", target->name, strerror(-status));
        return false;
    }
    return await(target, order.serial, timeout);
}

char *target_obstacle(const char *pid) {
    struct targets targets = {.list = NULL};
    struct view view;
    char *why = NULL;
    if (!view_read(&view))
        return NULL;
    if (find(&targets, &view, pid)) {
        struct target *target = &targets.list[0];
        if (target->answer.state != GPS_ANSWER_RUNS)
            why = tool_copy("it is suspended already");
        else if (target_open(target) && target_order(target, GPS_ORDER_CHECK, 0, 0))
            why = tool_copy(target->answer.reason);
    }
    view_free(&view);
    free_all(&targets);
    return why;
}
