#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
#include "util/procfs.h"

#define WHILE (20 * GPS_SECOND) /* a keeper that has to start, and a machine that is busy */
#define FEW   8                 /* descriptors that an answer may take */
#define PAUSE 5000              /* us, between two looks */

struct targets {
    struct target *list;
    size_t count;
};

/* --- finding --- */

static void add_stranger(struct targets *targets, const struct view *view, uint32_t pid) {
    TOOL_TEMP char *name = descendants_name(pid);
    TOOL_APPEND(targets->list, targets->count,
                (struct target){.store = view->store,
                                .pid = pid,
                                .name = tool_format("%s %u", name, pid),
                                .order = -1});
}

static bool add_found(struct targets *targets, const struct view *view) {
    const size_t before = targets->count;
    TOOL_EACH(const struct view_process, process, view->processes, view->process_count) {
        if (!process->found || !process->alive || !process->takes_orders)
            continue;
        struct target target = {.store = view->store,
                                .owner = process->owner,
                                .answer = process->answer,
                                .pid = pid_here(&process->owner),
                                .takes_orders = true,
                                .name = tool_copy(view_format_program(view, &process->owner).text),
                                .order = -1};
        TOOL_APPEND(targets->list, targets->count, target);
    }
    return targets->count > before;
}

static bool is_number(const char *text) {
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static bool is_here(const char *pid) {
    TOOL_TEMP char *path = tool_format("/proc/%s", pid);
    struct stat info;
    return stat(path, &info) == 0;
}

/* A pid counts in its namespace. False: it means more than one process, and they were printed. */
static bool target_number_is_sole(const struct view *view, const char *number) {
    TOOL_TEMP char *names = NULL;
    size_t count = 0;
    bool here = false;
    TOOL_EACH(const struct view_process, process, view->processes, view->process_count) {
        if (!process->found || !process->alive)
            continue;
        tool_list(&names, "%s", view_format_program(view, &process->owner).text);
        here |= pid_here(&process->owner) == (uint32_t)strtoul(number, NULL, 10);
        count++;
    }
    if (count > 0 && !here && is_here(number)) {
        TOOL_TEMP char *name = descendants_name((uint32_t)strtoul(number, NULL, 10));
        tool_list(&names, "%s %s", name, number);
        count++;
    }
    if (count > 1)
        tool_error("%s could mean %zu processes: %s; name it by its program, or with its pid "
                   "namespace as `gpushare ls` does (4242@4026531836)",
                   number, count, names);
    return count <= 1;
}

enum found { FOUND, FOUND_NONE, FOUND_TOO_MANY };

static enum found targets_find(struct targets *targets, struct view *view, const char *text) {
    if (find_process(view, text, process_has_any_pid) > 0) {
        if (is_number(text) && !target_number_is_sole(view, text))
            return FOUND_TOO_MANY;
        if (add_found(targets, view))
            return FOUND;
    }
    return find_process(view, text, process_has_program) > 0 && add_found(targets, view)
               ? FOUND
               : FOUND_NONE;
}

/* Finds a process that takes no orders; there may be none. */
static bool find_stranger(struct targets *targets, const struct view *view, const char *text,
                          bool force) {
    TOOL_TEMP char *path = tool_format("/proc/%s", text);
    TOOL_TEMP char *status = tool_format("%s/status", path);
    char group[64] = "";
    struct stat info;
    if (!is_number(text)) {
        tool_error("no program named '%s' runs with suspend = on; see: gpushare ls", text);
    } else if (stat(path, &info) != 0) {
        tool_error("no process has the pid '%s'; see: gpushare ls", text);
    } else if (tool_read_line(status, "Tgid:", group, sizeof(group)) &&
               strtoul(group + strlen("Tgid:"), NULL, 10) != strtoul(text, NULL, 10)) {
        tool_error("%s is the number of a thread of process %lu; name that", text,
                   strtoul(group + strlen("Tgid:"), NULL, 10));
    } else if (info.st_uid != geteuid()) {
        tool_error("process %s is of another user (uid %u), who alone may say this", text,
                   info.st_uid);
    } else if (!force) {
        tool_error("process %s does not run with suspend = on, so it cannot let go of what it "
                   "shares. With --force only the driver is asked: if it shares any memory, it is "
                   "lost",
                   text);
    } else {
        add_stranger(targets, view, (uint32_t)strtoul(text, NULL, 10));
        return true;
    }
    return false;
}

static void find_all_but(struct targets *targets, struct view *view, const char *program) {
    for (size_t i = 0; i < view->process_count; i++)
        view->processes[i].found = strcmp(view->processes[i].owner.command, program) != 0;
    add_found(targets, view);
}

/* False: a process was not found, and the reason was printed. */
static bool targets_find_all(char **operands, const struct targets_how *how,
                             struct targets *targets) {
    struct view view;
    bool all = true;
    *targets = (struct targets){.list = NULL};
    if (!view_read(&view))
        return false;
    for (; *operands; operands++) {
        const enum found found = targets_find(targets, &view, *operands);
        if (found == FOUND_NONE)
            all &= find_stranger(targets, &view, *operands, how->force);
        all &= found != FOUND_TOO_MANY;
    }
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

static bool targets_parse(const struct tool_args *args, struct targets_how *how) {
    const char *within = tool_or(how->within, "30s");
    if (!gps_parse_duration(within, &how->timeout) || how->timeout == 0)
        tool_error("--timeout '%s' is no time to wait; allowed: 500ms, 30s, 2min ...", within);
    else if ((args->operand_count == 0) == !how->all_but)
        tool_error("name processes, or --all-but PROGRAM; see: gpushare %s --help", how->verb);
    else
        return true;
    return false;
}

/* Whether the pid is still the process's: the driver takes a pid, which may be another's by now. */
static bool has_pid(const struct target *target) {
    if (!target->pid)
        tool_error("%s was not %s: it runs in another pid namespace, and /proc here does not show "
                   "which process it is; run this in its container, or on the host",
                   target->name, target->done);
    return target->pid != 0;
}

int targets_each(const struct tool_args *args, struct targets_how *how, target_fn *fn) {
    struct targets targets;
    if (!targets_parse(args, how))
        return TOOL_USAGE;
    bool good = targets_find_all(args->operands, how, &targets);
    const char *why = how->alone || targets.count == 0 ? NULL : checkpoint_open();
    if (why)
        tool_error("%s", why);
    for (size_t i = 0; !why && i < targets.count; i++) {
        targets.list[i].done = how->done;
        good &= (how->alone || has_pid(&targets.list[i])) && fn(&targets.list[i], how);
        fflush(stdout);
    }
    free_all(&targets);
    return good && !why ? TOOL_OK : TOOL_FAILED;
}

bool target_fail(const struct target *target, const char *step, int code) {
    return tool_error("%s was not %s: %s: error %d (%s)", target->name, target->done, step, code,
                      checkpoint_meaning(code));
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

/* Whether the process has answered this order, and is done with it; or takes its memory again, and
 * follows no order for room. */
static bool target_is_answered(struct target *target, enum gps_order_ask ask, uint64_t serial) {
    struct gps_answer_file answer;
    if (gps_answer_read(&target->store, &target->owner, &answer) < 0)
        return false;
    target->answer = answer;
    if (ask >= GPS_ORDER_ROOM && answer.state == GPS_ANSWER_TAKES)
        return true;
    return answer.serial == serial && answer.state != GPS_ANSWER_LEAVES &&
           answer.state != GPS_ANSWER_TAKES;
}

/* "" or why a process may not answer; malloc'ed. */
static char *why_silent(const struct target *target) {
    struct gps_procfs_stat stat;
    struct rlimit limit;
    TOOL_TEMP char *path = tool_format("/proc/%u/fd", target->pid);
    size_t count = 0;
    free(descendants_numbers(path, &count));
    if (target->pid && gps_procfs_stat(target->pid, &stat) == 0 &&
        (stat.state == 'T' || stat.state == 't'))
        return tool_copy("it is stopped; SIGCONT lets it go on");
    if (target->pid && prlimit((pid_t)target->pid, RLIMIT_NOFILE, NULL, &limit) == 0 &&
        count + FEW >= limit.rlim_cur)
        return tool_format("it has %zu of its %zu descriptors in use (RLIMIT_NOFILE), and needs a "
                           "few; prlimit(1) gives it more",
                           count, (size_t)limit.rlim_cur);
    return tool_copy(target->answer.reason);
}

static bool target_await(struct target *target, enum gps_order_ask ask, uint64_t serial,
                         uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout + WHILE;
    while (!target_is_answered(target, ask, serial)) {
        if (gps_lease_probe(&target->store, &target->owner) == GPS_DEAD)
            return tool_error("%s has ended", target->name);
        if (gps_clock_monotonic() > until) {
            TOOL_TEMP char *why = why_silent(target);
            return tool_error("%s has not answered in time%s%s", target->name, *why ? ": " : "",
                              why);
        }
        usleep(PAUSE);
    }
    return true;
}

bool target_order(struct target *target, enum gps_order_ask ask, uint64_t timeout, uint64_t freed) {
    struct gps_order order = {.ask = ask,
                              .serial = gps_random() | 1,
                              .timeout = timeout,
                              .freed = freed,
                              .flags = target->flags};
    const int status = gps_order_write(target->order, &order);
    if (status < 0)
        return tool_error("cannot tell %s: %s", target->name, strerror(-status));
    return target_await(target, ask, order.serial, timeout);
}

char *target_obstacle(const char *pid) {
    struct targets targets = {.list = NULL};
    struct view view;
    char *why = NULL;
    if (!view_read(&view))
        return NULL;
    if (targets_find(&targets, &view, pid) == FOUND) {
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
