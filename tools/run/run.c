/*
 * run.c - `gpushare run`: runs a command with the library preloaded.
 *
 * The command replaces this process, so signals and exit status are its own. In a container it is a
 * child, with a pid of its own. With --list-allocations it is a child, and its allocations are
 * listed after its end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocations/allocation_groups.h"
#include "audit_logs.h"
#include "cli/tool.h"
#include "descendants.h"
#include "launch.h"
#include "own_pid.h"

enum { OPTION_CONFIG, OPTION_MODE, OPTION_LIST, OPTION_OUTPUT, OPTION_JSON };

/* --- the list --- */

static bool print_list(FILE *out, const struct tool_args *args, struct logs *logs) {
    struct symbols *symbols = symbol_open(NULL);
    struct allocation_groups groups;
    logs_sort(logs);
    allocation_groups_make(&groups, logs);
    if (args->values[OPTION_JSON])
        allocation_groups_json(out, &groups, symbols);
    else
        allocation_groups_text(out, &groups, symbols);
    allocation_groups_free(&groups);
    symbol_close(symbols);
    return fflush(out) == 0 && !ferror(out);
}

static int list(const struct tool_args *args, const struct audit_logs *logs, FILE *out,
                const struct descendants *descendants) {
    struct logs lines = {NULL, 0};
    audit_logs_read(logs, &lines);
    const bool printed = print_list(out, args, &lines);
    logs_free(&lines);
    if (descendants->running > 0)
        tool_warn("%zu process%s still running; what they allocate from now on is not listed",
                  descendants->running, descendants->running == 1 ? "" : "es");
    if (!printed)
        tool_error("cannot write the list: %s", strerror(errno));
    return printed || descendants->status != 0 ? descendants->status : TOOL_RUN_FAILED;
}

/* --- the run --- */

static int run_listed(const struct tool_args *args, const struct audit_logs *logs, FILE *out) {
    launch_set("GPUSHARE_LIST_ALLOCATIONS", "yes");
    audit_logs_set_environment(logs, "error");
    if (!launch_prepare(args->values[OPTION_CONFIG], NULL, args->operands[0]))
        return TOOL_RUN_FAILED;
    struct descendants descendants;
    int status = descendants_run(args->operands, DESCENDANTS_ALL, &descendants);
    return status == 0 ? list(args, logs, out, &descendants)
                       : launch_failed(args->operands[0], -status);
}

static int run_with_list(const struct tool_args *args) {
    const char *path = args->values[OPTION_OUTPUT];
    FILE *out = path ? fopen(path, "we") : stderr;
    if (!out) {
        tool_error("cannot write '%s': %s", path, strerror(errno));
        return TOOL_RUN_FAILED;
    }
    struct audit_logs logs;
    int status = TOOL_RUN_FAILED;
    if (audit_logs_open(&logs, NULL)) {
        status = run_listed(args, &logs, out);
        audit_logs_close(&logs);
    }
    if (out != stderr)
        fclose(out);
    return status;
}

/* In a container: as a child, since a process cannot change its pid. */
static int run_as_another(char **command) {
    struct descendants descendants;
    const int status = descendants_run(command, DESCENDANTS_NONE, &descendants);
    return status == 0 ? descendants.status : launch_failed(command[0], -status);
}

static int run_plainly(const struct tool_args *args) {
    char **command = args->operands;
    if (!launch_prepare(args->values[OPTION_CONFIG], args->values[OPTION_MODE], command[0]))
        return TOOL_RUN_FAILED;
    if (own_pid_needed())
        return run_as_another(command);
    execvp(command[0], command);
    return launch_failed(command[0], errno);
}

static int run_run(const struct tool_args *args) {
    const bool listed = args->values[OPTION_LIST];
    if (listed && args->values[OPTION_MODE])
        tool_error("--list-allocations only observes; leave --mode away");
    else if (!listed && (args->values[OPTION_OUTPUT] || args->values[OPTION_JSON]))
        tool_error("--output and --json are for --list-allocations");
    else
        return listed ? run_with_list(args) : run_plainly(args);
    return TOOL_RUN_FAILED;
}

const struct tool_verb tool_verb_run = {
    .name = "run",
    .operands = "[--] CMD...",
    .summary = "run a command with gpushare preloaded",
    .details =
        "Puts libgpushare.so first into LD_PRELOAD and becomes CMD; its exit status is CMD's own.\n"
        "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not found.\n"
        "In a container (a pid namespace) CMD is a child and gets a pid that no other process has\n"
        "which shares: the driver tells processes apart by their pids.\n"
        "The library is GPUSHARE_LIBRARY, or found beside this tool, or where it is installed.\n"
        "With --list-allocations nothing is shared or changed; when CMD has ended, the device\n"
        "memory that it and its children allocated is listed on stderr, with a rule for each.\n",
    .options = {{"config", 'c', "FILE", "use this configuration (checked first)"},
                {"mode", 'm', "MODE", "share, audit or off, instead of the configuration's"},
                {"list-allocations", 'L', NULL, "observe only, then list allocations and rules"},
                {"output", 'o', "FILE", "write the list to FILE: it is a configuration"},
                {"json", 0, NULL, "the list as JSON"}},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_run,
};
