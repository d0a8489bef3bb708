/*
 * report_model.c - the content of a report: aggregated findings of logs, with their symbols.
 */
#include "report.h"

#include "cli/tool.h"

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
    *suppressions = (struct suppressions){NULL, 0};
    return !option || suppress_read(suppressions, option, tool_error_in, NULL) == 0;
}

void report_make(struct report *report, enum gps_level level,
                 const struct suppressions *suppressions, const char *debug_directory) {
    report->symbols = symbol_open(debug_directory);
    logs_sort(&report->logs);
    aggregate_make(&report->aggregate, &report->logs, level);
    suppress_aggregate(suppressions, &report->aggregate, report->symbols);
}

void report_free(struct report *report) {
    aggregate_free(&report->aggregate);
    symbol_close(report->symbols);
    logs_free(&report->logs);
}

bool report_has_error(const struct report *report) {
    return aggregate_sums(&report->aggregate).findings[GPS_LEVEL_ERROR] > 0;
}
