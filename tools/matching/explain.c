/*
 * explain.c - `gpushare explain`: runs a command, and says for each allocation which rule took it;
 * or says what a finding means.
 *
 * The rules are followed as with `gpushare run`, for only then is it known what becomes of a match.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/temporary.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "directory/view.h"
#include "explained.h"
#include "report/explain_finding.h"
#include "run/descendants.h"
#include "run/launch.h"
#include "run/watched.h"

enum { OPTION_CONFIG, OPTION_LIST };

/* --- the directory of the processes' files --- */

static void each_file(const char *directory, void (*fn)(struct explained *, const char *),
                      struct explained *explained) {
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char *path = tool_format("%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            fn(explained, path);
        free(path);
    }
    if (dir)
        closedir(dir);
}

static void remove_file(struct explained *unused, const char *path) {
    (void)unused;
    unlink(path);
}

/* --- the report --- */

static void ignore_error(void *arg, const char *file, unsigned line, const char *message) {
    (void)arg, (void)file, (void)line, (void)message;
}

/* Says where a partner that did not come may be. */
static void print_remedies(void) {
    char *others = view_other_users();
    char *text =
        tool_format("An allocation was left private: `gpushare ls` says who shares in this "
                    "directory, `gpushare doctor` whether that works here.%s%s%s",
                    others ? " " : "", tool_or(others, ""), others ? "." : "");
    fputc('\n', stderr);
    wrap_text(stderr, text, 0);
    free(text);
    free(others);
}

/* Prints what was found. Returns whether all that the command did with CUDA was seen. */
static bool print(const char *command, const char *directory, const struct watched *watched,
                  size_t running) {
    struct gps_config config;
    struct explained explained = {.config = &config};
    if (gps_config_load(&config, ignore_error, NULL) != 0)
        return false; /* it was checked before; somebody has changed it meanwhile */
    each_file(directory, explained_read, &explained);
    fprintf(stderr, "\n%s%s: %zu rule%s%s\n", term_colour_on(stderr, TERM_BOLD),
            config.source[0] ? config.source : "no configuration was found", config.rule_count,
            config.rule_count == 1 ? "" : "s", term_colour_on(stderr, TERM_PLAIN));
    explained_print_allocations(stderr, &explained);
    if (explained.count > 0)
        explained_print_misses(stderr, &explained);
    if (explained_any_private(&explained))
        print_remedies();
    const bool all = watched_all(watched, explained.count, "explain", command);
    if (running > 0)
        tool_warn("%zu still running; what they allocate from now on is not shown", running);
    explained_free(&explained);
    gps_config_free(&config);
    return all;
}

static int run_command(char **command, const char *directory, struct watched *watched) {
    const struct descendants_scan scan = {watched_check, watched, watched->opened};
    struct descendants descendants;
    const int status = descendants_run(command, DESCENDANTS_ALL, &scan, &descendants);
    if (status != 0)
        return launch_failed(command[0], -status);
    const bool all = print(command[0], directory, watched, descendants.running);
    return descendants.status == 0 && !all ? TOOL_FAILED : descendants.status;
}

static int explain_command(const struct tool_args *args) {
    char *directory = temporary_make("");
    struct watched watched;
    int status = TOOL_RUN_FAILED;
    if (!directory)
        return status;
    watched_begin(&watched);
    launch_set("GPUSHARE_EXPLAIN", directory);
    if (launch_prepare(args->values[OPTION_CONFIG], "share", args->operands[0]))
        status = run_command(args->operands, directory, &watched);
    watched_end(&watched);
    each_file(directory, remove_file, NULL);
    rmdir(directory);
    free(directory);
    return status;
}

static int explain_names(char **names) {
    const char *unknown = explain_finding_unknown(names);
    if (!unknown) {
        explain_findings(names);
        return TOOL_OK;
    }
    tool_error("'%s' is no finding; gpushare explain --list has all; a command stands behind --",
               unknown);
    return TOOL_FAILED;
}

static int run_explain(const struct tool_args *args) {
    const bool list = args->values[OPTION_LIST];
    if (args->separated && args->operand_count > 0 && !list)
        return explain_command(args);
    if (list != (args->operand_count == 0)) {
        tool_error(list ? "neither a FINDING nor a command goes with --list"
                        : "-- CMD, a FINDING or --list is missing; see: gpushare explain --help");
        return TOOL_USAGE;
    }
    if (!list)
        return explain_names(args->operands);
    explain_finding_list();
    return TOOL_OK;
}

const struct tool_verb tool_verb_explain = {
    .name = "explain",
    .operands = "-- CMD...|FINDING...",
    .summary = "say which rule took each allocation of a command, or what a finding means",
    .details =
        "FINDING is an id, as double-free, or a glob, as 'open-*': explained in full.\n"
        "Runs CMD as `gpushare run -m share` does: the rules are followed, and waited "
        "for.\n"
        "When it has ended a line for each allocation (equal ones once) says on stderr "
        "its size, the call, the module that called, and the rule that took it, or for "
        "each rule of its program the first reason against it. At the end stand the "
        "rules that matched nothing, with what came nearest.\n"
        "The exit status is CMD's own; 0 becomes 1 if a process that used CUDA, or any, could "
        "not be watched.\n"
        "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not "
        "found.\n",
    .options = {{"config", 'c', "FILE", "CMD: use this configuration (checked first)"},
                {"list", 'l', NULL, "list all findings, in groups"}},
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_explain,
};
