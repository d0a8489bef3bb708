/*
 * audit.c - `gpushare audit`: runs a command, then reports on it and its children.
 *
 * The whole command line is checked before the command starts, for the command may run for days.
 */
#include <signal.h>

#include "audit_logs.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "command.h"
#include "directory/lease.h"
#include "directory/view.h"
#include "launch.h"
#include "log/log.h"
#include "report/report.h"
#include "timeline/timeline.h"
#include "vendor.h"
#include "watched.h"

enum {
    OPTION_CONFIG,
    OPTION_FAIL_ON,
    OPTION_EXITCODE,
    OPTION_SUPPRESSIONS,
    OPTION_NO_DEFAULTS,
    OPTION_GENERATE,
    OPTION_LEVEL,
    OPTION_LEAKS,
    OPTION_LOG,
    OPTION_JSON, /* the first of the outputs */
    OPTION_SARIF,
    OPTION_TIMELINE,
    OPTION_DEBUG,
    OPTION_RUNTIME,
};

enum { JSON, SARIF, TIMELINE, OUTPUTS };

struct audit {
    const struct tool_args *args;
    enum runtime runtime;
    struct report_fail fail;
    bool leaks; /* what is never freed is reported, too */
    enum gps_level level;
    struct suppressions suppressions;
    FILE *outputs[OUTPUTS]; /* NULL: not wanted */
    struct audit_logs logs;
    struct history history; /* for the timeline */
    struct watched watched;
};

/* --- before --- */

static bool audit_parse_fail(struct audit *audit) {
    const char *const *values = audit->args->values;
    return report_fail_parse(&audit->fail, values[OPTION_FAIL_ON], values[OPTION_EXITCODE],
                             values[OPTION_LEVEL]) &&
           !report_fail_misses(&audit->fail, "GPUSHARE_LOG_LEVEL", getenv("GPUSHARE_LOG_LEVEL"));
}

static bool parse_leaks(struct audit *audit) {
    audit->leaks = audit->args->values[OPTION_LEAKS] || audit->fail.on == REPORT_FAIL_LEAK;
    if (!audit->leaks || audit->level == GPS_LEVEL_INFO)
        return true;
    return tool_error("--level=%s leaves out what --leak-check reports; give --level=info",
                      gps_level_name(audit->level));
}

/* Their contents stay until there is a report. */
static bool open_outputs(struct audit *audit) {
    const char *const *paths = &audit->args->values[OPTION_JSON];
    for (int i = 0; i < OUTPUTS; i++)
        if (paths[i] && !(audit->outputs[i] = output_open(paths[i])))
            return false;
    return true;
}

static bool close_outputs(struct audit *audit) {
    const char *const *paths = &audit->args->values[OPTION_JSON];
    bool closed = true;
    for (int i = 0; i < OUTPUTS; i++) {
        closed = output_close(audit->outputs[i], paths[i]) && closed;
        audit->outputs[i] = NULL;
    }
    return closed;
}

static bool audit_parse(struct audit *audit) {
    const char *const *values = audit->args->values;
    return runtime_choose(values[OPTION_RUNTIME], audit->args->operands[0], &audit->runtime) &&
           report_level(values[OPTION_LEVEL], &audit->level) && audit_parse_fail(audit) &&
           parse_leaks(audit) &&
           report_suppressions(values[OPTION_SUPPRESSIONS], values[OPTION_NO_DEFAULTS],
                               &audit->suppressions) &&
           open_outputs(audit);
}

/* --- during --- */

/* The audit joins the processes that share. The last of them to leave the directory removes the
 * records of those that have ended. The audit leaves after all others, so a process that opens a
 * handle too late still learns whose memory it was. */
struct member {
    struct gps_store store;
    struct gps_lease lease;
    bool joined;
};

/* Joins the directory that the environment names, which is made if need be. */
static bool member_join(struct member *member) {
    struct gps_owner self;
    struct view_place place;
    view_place_get(&place);
    if (view_store(&place, true, &member->store) != 0)
        return false;
    gps_owner_self(&self);
    return gps_lease_take(&member->store, &self, NULL, &member->lease) == 0;
}

/* A failure is the command's processes' to report. A child does not inherit the membership. */
static void begin_membership(struct member *member) {
    /* a limit on the size of files would otherwise end this process */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    member->joined = member_join(member);
    signal(SIGXFSZ, before);
}

static void end_membership(struct member *member) {
    if (!member->joined)
        return;
    gps_lease_drop(&member->lease);
    view_store_leave(&member->store);
}

/* --- after --- */

/* Reads the logs, and removes them if they are temporary. */
static bool read_logs(struct audit *audit, struct report *report) {
    const struct audit_channel *channel = &audit->watched.channel;
    audit_channel_close(&audit->watched.channel);
    aggregate_begin(&report->aggregate, audit->level);
    const bool read = audit_logs_read(&audit->logs, channel, aggregate_add, &report->aggregate);
    if (audit->outputs[TIMELINE]) {
        history_begin(&audit->history);
        audit_logs_read(&audit->logs, NULL, history_add, &audit->history);
        history_end(&audit->history);
    }
    audit_logs_close(&audit->logs);
    command_release_signals(); /* a report may wait for its reader */
    return read;
}

static bool audit_print_report(struct audit *audit, const struct report *report) {
    const char *const *values = audit->args->values;
    report_text(stderr, report);
    if (values[OPTION_GENERATE])
        suppress_print(stderr, &report->aggregate, report->symbols);
    if (audit->outputs[JSON])
        report_json(audit->outputs[JSON], report);
    if (audit->outputs[SARIF])
        report_sarif(audit->outputs[SARIF], report);
    if (audit->outputs[TIMELINE]) {
        timeline_page(audit->outputs[TIMELINE], &audit->history, values[OPTION_DEBUG]);
        history_free(&audit->history);
    }
    return close_outputs(audit);
}

static void warn_of_running(const struct audit *audit, const struct command_left *left) {
    if (left->count == 0)
        return;
    const char *plural = left->count == 1 ? "" : "es";
    if (audit->logs.temporary)
        tool_warn("%zu process%s still running: %s; what may be reported yet goes to stderr; "
                  "to keep it, use --log=DIR",
                  left->count, plural, left->names);
    else
        tool_warn("%zu process%s still running: %s; what may be reported yet is shown by: "
                  "gpushare report %s",
                  left->count, plural, left->names, audit->logs.path);
}

/* Where a call was seen: where none was, that is what is said. */
static const char *unwatched(const struct audit *audit) {
    if (!watched_has_calls(&audit->watched))
        return NULL;
    return audit->leaks ? "what kernels do (compute-sanitizer), and memory of cuMemCreate and of "
                          "pools that is never freed"
                        : "memory that is never freed (--leak-check), and what kernels do "
                          "(compute-sanitizer)";
}

static int make_report(struct audit *audit, int status, const struct command_left *left) {
    struct report report = {.symbols = NULL};
    const bool read = read_logs(audit, &report);
    const uint64_t reported = aggregate_processes(&report.aggregate);
    TOOL_TEMP char *watched = watched_text(&audit->watched, reported);
    report.watched = watched;
    report.unwatched = unwatched(audit);
    report_make(&report, &audit->suppressions, audit->args->values[OPTION_DEBUG]);
    const bool printed = audit_print_report(audit, &report);
    report_unmatched(&audit->suppressions);
    const bool all =
        watched_all(&audit->watched, reported, "audit", audit->args->operands[0], status);
    watched_tell_silent(&audit->watched);
    warn_of_running(audit, left);
    const int failed = report_fail_status(&audit->fail, &report);
    report_free(&report);
    return status != 0   ? status
           : failed != 0 ? failed
           : !printed    ? TOOL_RUN_FAILED
           : read && all ? TOOL_OK
                         : TOOL_BLIND;
}

static int audit_run_command(struct audit *audit) {
    char **command = audit->args->operands;
    struct member member;
    struct command_left left;
    begin_membership(&member);
    int status = command_run(command, COMMAND_AND_DESCENDANTS, &audit->watched, &left);
    end_membership(&member);
    if (status < 0)
        return launch_failed(command[0], -status);
    signal(SIGPIPE,
           SIG_IGN); /* temporary logs must be removed also where nobody reads the report */
    const int judged = make_report(audit, status, &left);
    free(left.names);
    return judged;
}

static int run_logged(struct audit *audit) {
    const struct tool_args *args = audit->args;
    int status = TOOL_RUN_FAILED;
    command_hold_signals();
    if (!audit_logs_open(&audit->logs, args->values[OPTION_LOG]))
        return status;
    if (audit->leaks)
        launch_set("GPUSHARE_LEAK_CHECK", "on");
    watched_begin(&audit->watched, audit->runtime, audit->logs.path, !audit->logs.temporary);
    audit_logs_set_environment(
        &audit->logs, audit->leaks ? "info" : tool_or(getenv("GPUSHARE_LOG_LEVEL"), "info"),
        audit->outputs[TIMELINE]);
    if (launch_prepare(args->values[OPTION_CONFIG], NULL, audit->runtime, args->operands[0]))
        status = audit_run_command(audit);
    watched_end(&audit->watched);
    audit_logs_close(&audit->logs);
    command_release_signals();
    return status;
}

static int run_audit(const struct tool_args *args) {
    struct audit audit = {.args = args};
    int status = audit_parse(&audit) ? run_logged(&audit) : TOOL_RUN_FAILED;
    close_outputs(&audit);
    suppress_free(&audit.suppressions);
    return status;
}

const struct tool_verb tool_verb_audit = {
    .name = "audit",
    .operands = "[--] CMD...",
    .summary = "run a command and report what it does wrong",
    .details = "Runs CMD as `gpushare run` does, in mode audit, which changes nothing, and then "
               "prints on stderr what CMD and the processes that it started did wrong with "
               "CUDA's shared memory, as `gpushare report` does. Standard input, output and "
               "error are CMD's own. The options and their files are checked before CMD starts.\n\n"
               "The last line says how many processes used CUDA, and how many of their calls "
               "were seen: allocations, frees, IPC memory, events and contexts. What kernels do "
               "is not looked at: for accesses out of bounds, uninitialised memory and races "
               "there is compute-sanitizer.\n\n"
               "Processes that still run when CMD has ended get 5 seconds to end; then the "
               "report is made without them, and says how many they are. SIGINT and SIGQUIT are "
               "left to CMD, SIGTERM and SIGHUP are passed on to it.\n\n"
               "The exit status is CMD's own, or 128 and the number of its signal; 0 becomes 1 "
               "if there was a finding that --fail-on counts, else 3 if a process that used "
               "CUDA, or any, could not be watched, a line of a log is missing, or no call was "
               "seen.\n"
               "125: gpushare itself failed, 126: CMD cannot be executed, 127: not found.\n",
    .options = {{"config", 'c', "FILE", "use this configuration (checked first)"},
                {"fail-on", 0, "KIND",
                 "error, warning, leak or info: exit with 1 after such a "
                 "finding, or a worse one, that is not suppressed; error"},
                {"error-exitcode", 0, "N", "exit with N, 0 to 255, not 1, after such findings"},
                {"suppressions", 's', "FILE",
                 "leave out what a section of this file matches; see gpushare(1)"},
                {"no-default-suppressions", 0, NULL, "report what libraries are known to do, too"},
                {"gen-suppressions", 0, NULL,
                 "print a suppression for each finding on stderr, too; a file of them writes: "
                 "gpushare report --gen-suppressions LOG >FILE"},
                {"level", 'l', "LEVEL", "info, warning or error: report this and worse (info)"},
                {"leak-check", 0, NULL,
                 "report, too, what was never freed, by call site; --fail-on=leak does so, too"},
                {"log", 0, "DIR",
                 "keep the logs in this new or empty directory, for `gpushare report`"},
                {"json", 0, "FILE", "also write the report as `gpushare report --json` does"},
                {"sarif", 0, "FILE",
                 "also write the report as SARIF 2.1.0, as `gpushare report --sarif` does"},
                {"timeline", 0, "FILE", "also write a page that shows what happened when"},
                {"debug-dir", 0, "DIR", "look for debug files here, too"},
                RUNTIME_OPTION},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_audit,
};
