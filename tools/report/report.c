/*
 * report.c - `gpushare report`: makes one report of the logs of many processes; and what `report`
 * has in common with `audit`.
 */
#include <errno.h>
#include <string.h>

#include "cli/tool.h"
#include "report.h"
#include "symbols/runtime_frames.h"

enum {
    OPTION_JSON,
    OPTION_SARIF,
    OPTION_GENERATE,
    OPTION_SUPPRESSIONS,
    OPTION_LEVEL,
    OPTION_DEBUG,
};

void report_complain(const char *file, unsigned long line, const char *message) {
    if (line > 0)
        tool_warn("%s:%lu: %s", file, line, message);
    else
        tool_warn("%s: %s", file, message);
}

bool report_level(const char *option, enum gps_level *level) {
    *level = GPS_LEVEL_INFO;
    if (!option || log_line_level(option, level))
        return true;
    tool_error("--level '%s' is not a level; allowed: info, warning, error", option);
    return false;
}

bool report_suppressions(const char *option, struct suppressions *suppressions) {
    *suppressions = (struct suppressions){.file = NULL};
    return !option || suppress_read(suppressions, option);
}

void report_make(struct report *report, struct suppressions *suppressions,
                 const char *debug_directory) {
    report->symbols = symbol_open(debug_directory);
    aggregate_end(&report->aggregate);
    for (size_t i = 0; i < report->aggregate.count; i++)
        runtime_frames_strip(report->aggregate.groups[i]->first, report->symbols);
    suppress_aggregate(suppressions, &report->aggregate, report->symbols);
}

void report_free(struct report *report) {
    aggregate_free(&report->aggregate);
    symbol_close(report->symbols);
}

static enum report_fail fail_of(const struct log_line *line) {
    if (line->level != GPS_LEVEL_INFO)
        return line->level == GPS_LEVEL_ERROR ? REPORT_FAIL_ERROR : REPORT_FAIL_WARNING;
    return strncmp(line->finding, "leak-", 5) == 0 ? REPORT_FAIL_LEAK : REPORT_FAIL_INFO;
}

bool report_fails(const struct report *report, enum report_fail from) {
    for (size_t i = 0; i < report->aggregate.count; i++) {
        const struct aggregate_group *group = report->aggregate.groups[i];
        if (!group->suppressed && fail_of(group->first) <= from)
            return true;
    }
    return false;
}

void report_unmatched(const struct suppressions *suppressions) {
    for (size_t i = 0; i < suppressions->count; i++) {
        const struct suppression *section = &suppressions->sections[i];
        if (!section->used)
            tool_warn("%s:%u: [%s] matched nothing; leave it out if the finding is mended",
                      suppressions->file, section->line, section->title);
    }
}

/* --- the verb --- */

static void print(const struct report *report, const struct tool_args *args) {
    if (args->values[OPTION_JSON])
        report_json(stdout, report);
    else if (args->values[OPTION_SARIF])
        report_sarif(stdout, report);
    else if (args->values[OPTION_GENERATE])
        suppress_print(stdout, &report->aggregate, report->symbols);
    else
        report_text(stdout, report);
}

static bool one_format(const struct tool_args *args) {
    int formats = !!args->values[OPTION_JSON] + !!args->values[OPTION_SARIF] +
                  !!args->values[OPTION_GENERATE];
    if (formats > 1)
        tool_error("--json, --sarif and --gen-suppressions exclude each other");
    return formats <= 1;
}

/* A log that cannot be read does not keep the others from being read. */
static int add_logs(struct aggregate *aggregate, char **paths) {
    const struct log_sink sink = {aggregate_add, aggregate, report_complain};
    int result = TOOL_OK;
    for (; *paths; paths++) {
        const int status = logs_add(*paths, &sink);
        if (status != 0 && status != -ENODATA)
            tool_error("cannot read '%s': %s", *paths, strerror(-status));
        result = status != 0 ? TOOL_BLIND : result;
    }
    return result;
}

static int run_report(const struct tool_args *args) {
    enum gps_level level;
    if (!one_format(args) || !report_level(args->values[OPTION_LEVEL], &level))
        return TOOL_USAGE;
    struct suppressions suppressions;
    if (!report_suppressions(args->values[OPTION_SUPPRESSIONS], &suppressions))
        return TOOL_FAILED;
    struct report report = {.symbols = NULL};
    aggregate_begin(&report.aggregate, level);
    int status = add_logs(&report.aggregate, args->operands);
    report_make(&report, &suppressions, args->values[OPTION_DEBUG]);
    print(&report, args);
    report_unmatched(&suppressions);
    report_free(&report);
    suppress_free(&suppressions);
    return status;
}

const struct tool_verb tool_verb_report = {
    .name = "report",
    .operands = "LOG...",
    .summary = "explain logs of many processes at once",
    .details = "LOG is a file that gpushare wrote with log_format = jsonl, a directory of "
               "*.jsonl files, or - for standard input. Equal findings are shown once; frames "
               "get function and line.\n"
               "The exit status is 3 if a LOG cannot be read, or has no line of a log.\n",
    .options = {{"json", 0, NULL, "print an array of objects"},
                {"sarif", 0, NULL, "print SARIF 2.1.0, for code-scanning tools"},
                {"gen-suppressions", 0, NULL, "print a suppression for each finding instead"},
                {"suppressions", 's', "FILE", "leave out what this file matches"},
                {"level", 'l', "LEVEL", "info, warning or error: this and worse"},
                {"debug-dir", 0, "DIR", "look for debug files here, too"}},
    .operands_min = 1,
    .operands_max = 1 << 20,
    .run = run_report,
};
