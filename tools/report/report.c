/*
 * report.c - `gpushare report`: makes one report of the logs of many processes; and what `report`
 * has in common with `audit`.
 */

#include "report.h"
#include "cli/tool.h"
#include "symbols/user_frame.h"

enum {
    OPTION_JSON,
    OPTION_SARIF,
    OPTION_GENERATE,
    OPTION_SUPPRESSIONS,
    OPTION_NO_DEFAULTS,
    OPTION_LEVEL,
    OPTION_FAIL_ON,
    OPTION_EXITCODE,
    OPTION_DEBUG,
};

void report_complain(const char *file, unsigned long line, const char *message) {
    if (line > 0)
        tool_warn("%s:%lu: %s", file, line, message);
    else
        tool_warn("%s: %s", file, message);
}

int report_read_logs(char **paths, log_line_fn *line, void *arg) {
    const struct log_sink sink = {line, arg, report_complain};
    int result = 0;
    for (; *paths; paths++) {
        const int status = logs_add(*paths, &sink);
        if (status != 0 && status != -ENODATA) {
            tool_error("cannot read '%s': %s", *paths, strerror(-status));
            result = -EIO;
        }
        result = status == -ENODATA && result == 0 ? status : result;
    }
    return result;
}

bool report_level(const char *option, enum gps_level *level) {
    *level = GPS_LEVEL_INFO;
    if (!option || log_line_level(option, level))
        return true;
    return tool_error("--level '%s' is not a level; allowed: info, warning, error", option);
}

bool report_suppressions(const char *option, const char *no_defaults,
                         struct suppressions *suppressions) {
    *suppressions = (struct suppressions){.file = NULL};
    if (!no_defaults)
        suppress_add_known(suppressions);
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

void report_unmatched(const struct suppressions *suppressions) {
    TOOL_EACH(const struct suppression, section, suppressions->sections, suppressions->count) {
        if (!section->used && !section->known)
            tool_warn("%s:%u: [%s] matched nothing; leave it out if the finding is mended",
                      suppressions->file, section->line, section->title);
    }
}

/* --- the verb --- */

static void report_print(const struct report *report, const struct tool_args *args) {
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

/* A report is no check of a build unless it is told to be one. */
static bool report_parse_fail(const char *const *values, struct report_fail *fail) {
    const char *kind = values[OPTION_FAIL_ON], *status = values[OPTION_EXITCODE];
    if (!report_fail_parse(fail, kind, status, kind || status ? values[OPTION_LEVEL] : NULL))
        return false;
    if (!kind && !status)
        fail->status = TOOL_OK;
    return true;
}

static int run_report(const struct tool_args *args) {
    enum gps_level level;
    struct report_fail fail;
    if (!one_format(args) || !report_level(args->values[OPTION_LEVEL], &level) ||
        !report_parse_fail(args->values, &fail))
        return TOOL_USAGE;
    struct suppressions suppressions;
    if (!report_suppressions(args->values[OPTION_SUPPRESSIONS], args->values[OPTION_NO_DEFAULTS],
                             &suppressions))
        return TOOL_BLIND;
    struct report report = {.symbols = NULL};
    aggregate_begin(&report.aggregate, level);
    const int read = report_read_logs(args->operands, aggregate_add, &report.aggregate);
    report_make(&report, &suppressions, args->values[OPTION_DEBUG]);
    report_print(&report, args);
    report_unmatched(&suppressions);
    const int failed = report_fail_status(&fail, &report);
    report_free(&report);
    suppress_free(&suppressions);
    return failed != TOOL_OK ? failed : read == 0 ? TOOL_OK : TOOL_BLIND;
}

const struct tool_verb tool_verb_report = {
    .name = "report",
    .operands = "LOG...",
    .summary = "explain logs of many processes at once",
    .details = "LOG is a file that gpushare wrote with log_format = jsonl, a directory of "
               "*.jsonl files, or - for standard input. Equal findings, by id, call and stack, "
               "are shown once; the facts are those of the first. Frames get function and line. "
               "Lines that are cut off are warned about and skipped.\n\n"
               "The exit status is 1 if there is a finding that --fail-on counts, else 3 if a "
               "LOG cannot be read, or has no line of a log; the others are reported all the "
               "same. It is 3, too, if the suppressions cannot be read; then nothing is.\n",
    .options = {{"json", 0, NULL, "print an array of objects"},
                {"sarif", 0, NULL,
                 "print SARIF 2.1.0, for code-scanning tools; it marks what is suppressed"},
                {"gen-suppressions", 0, NULL, "print a suppression for each finding instead"},
                {"suppressions", 's', "FILE",
                 "leave out what a section of this file matches; see gpushare(1)"},
                {"no-default-suppressions", 0, NULL, "report what libraries are known to do, too"},
                {"level", 'l', "LEVEL", "info, warning or error: this and worse (info)"},
                {"fail-on", 0, "KIND",
                 "error, warning, leak or info: exit with 1 if there is such a finding, or a worse "
                 "one, that is not suppressed"},
                {"error-exitcode", 0, "N",
                 "exit with N, 0 to 255, not 1, then; alone it means --fail-on=error, too"},
                {"debug-dir", 0, "DIR",
                 "look for debug files here first, by name and, in DIR/.build-id, by build id"}},
    .operands_min = 1,
    .operands_max = 1 << 20,
    .run = run_report,
};
