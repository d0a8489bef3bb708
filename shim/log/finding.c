/* finding.c - looks findings up in the catalogue of gpushare/finding.h. */

#include "log.h"
#include "wording.h"

/* A number may come from the log of a newer version: what is behind the catalogue stands for it. */
static const struct row {
    const char *id, *sentence, *hint;
    enum gps_level level, raised;
    const char *raised_where;           /* NULL: nowhere */
    const char *rule_hint, *range_hint; /* other ones, or NULL */
} rows[GPS_FINDING_COUNT + 1] = {
    /* clang-format off */
    [GPS_FINDING_COUNT] = {"unknown", "an unknown finding", "", .level = GPS_LEVEL_ERROR},
#define FINDING(name, id_, level_, sentence_, hint_)                                               \
    [GPS_##name] = {id_, sentence_, hint_, .level = GPS_LEVEL_##level_},
    GPS_FINDINGS(FINDING)
#define RAISED(name, level_, where)                                                                \
    [GPS_##name].raised = GPS_LEVEL_##level_, [GPS_##name].raised_where = where,
    GPS_RAISED_LEVELS(RAISED)
#define RULE_HINT(name, hint_) [GPS_##name].rule_hint = hint_,
    GPS_RULE_HINTS(RULE_HINT)
#define RANGE_HINT(name, hint_) [GPS_##name].range_hint = hint_,
    GPS_RANGE_HINTS(RANGE_HINT)
    /* clang-format on */
};

static const struct row *row_of(enum gps_finding finding) {
    return &rows[(unsigned)finding < GPS_FINDING_COUNT ? finding : GPS_FINDING_COUNT];
}

const char *gps_finding_id(enum gps_finding finding) {
    return row_of(finding)->id;
}

enum gps_level gps_finding_level(enum gps_finding finding) {
    return row_of(finding)->level;
}

const char *gps_finding_raised(enum gps_finding finding, enum gps_level *level) {
    const struct row *row = row_of(finding);
    if (row->raised_where)
        *level = row->raised;
    return row->raised_where;
}

enum gps_level gps_report_level(const struct gps_report *report) {
    const struct row *row = row_of(report->finding);
    return report->ordinary                      ? GPS_LEVEL_INFO
           : report->raised && row->raised_where ? row->raised
                                                 : row->level;
}

const char *gps_finding_sentence(enum gps_finding finding) {
    return row_of(finding)->sentence;
}

const char *gps_finding_hint(enum gps_finding finding) {
    return row_of(finding)->hint;
}

const char *gps_report_hint(const struct gps_report *report) {
    const struct row *row = row_of(report->finding);
    if (report->hint)
        return report->hint;
    if (row->range_hint && gps_wording_is_by_range())
        return row->range_hint;
    return row->rule_hint && report->name && *report->name ? row->rule_hint : row->hint;
}

const char *gps_level_name(enum gps_level level) {
    return level == GPS_LEVEL_INFO ? "info" : level == GPS_LEVEL_WARNING ? "warning" : "error";
}
