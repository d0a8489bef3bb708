/* report_fail.c - whether the findings of a report fail a build, and with what status. */

#include "cli/tool.h"
#include "log/log.h"
#include "report.h"

/* Each takes those before it in, too. */
static const struct {
    const char *name;
    enum gps_level least; /* of the findings that it counts */
} kinds[] = {[REPORT_FAIL_ERROR] = {"error", GPS_LEVEL_ERROR},
             [REPORT_FAIL_WARNING] = {"warning", GPS_LEVEL_WARNING},
             [REPORT_FAIL_LEAK] = {"leak", GPS_LEVEL_INFO},
             [REPORT_FAIL_INFO] = {"info", GPS_LEVEL_INFO}};

static bool parse_status(const char *text, int *status) {
    *status = TOOL_FAILED;
    if (!text)
        return true;
    char *end;
    long value = strtol(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && value >= 0 && value <= 255) {
        *status = (int)value;
        return true;
    }
    return tool_error("--error-exitcode '%s' is no exit status; allowed: 0 to 255", text);
}

static bool parse_kind(const char *text, enum report_kind *kind) {
    *kind = REPORT_FAIL_ERROR;
    while (text && *kind <= REPORT_FAIL_INFO && strcmp(text, kinds[*kind].name) != 0)
        ++*kind;
    if (*kind <= REPORT_FAIL_INFO)
        return true;
    return tool_error("--fail-on '%s' is not known; allowed: error, warning, leak, info", text);
}

bool report_fail_misses(const struct report_fail *fail, const char *setting, const char *text) {
    enum gps_level level;
    const enum gps_level least = kinds[fail->on].least;
    if (!text || !log_line_level(text, &level) || level <= least)
        return false;
    tool_error("%s=%s leaves out what --fail-on=%s counts; give %s=%s", setting, text,
               kinds[fail->on].name, setting, gps_level_name(least));
    return true;
}

bool report_fail_parse(struct report_fail *fail, const char *kind, const char *status,
                       const char *level) {
    return parse_status(status, &fail->status) && parse_kind(kind, &fail->on) &&
           !report_fail_misses(fail, "--level", level);
}

static enum report_kind report_fail_kind_of(const struct log_line *line) {
    if (line->level != GPS_LEVEL_INFO)
        return line->level == GPS_LEVEL_ERROR ? REPORT_FAIL_ERROR : REPORT_FAIL_WARNING;
    return strncmp(line->finding, "leak-", 5) == 0 ? REPORT_FAIL_LEAK : REPORT_FAIL_INFO;
}

int report_fail_status(const struct report_fail *fail, const struct report *report) {
    for (size_t i = 0; i < report->aggregate.count; i++) {
        const struct aggregate_group *group = report->aggregate.groups[i];
        if (!group->suppressed && report_fail_kind_of(group->first) <= fail->on)
            return fail->status;
    }
    return TOOL_OK;
}
