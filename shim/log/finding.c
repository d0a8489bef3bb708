/* finding.c - looks findings up in the catalogue of gpushare/finding.h. */
#include <stddef.h>

#include "log.h"
#include "wording.h"

static const struct row {
    const char *id;
    enum gps_level level;
    const char *sentence;
    const char *hint;
} rows[] = {
#define FINDING_ROW(name, id, level, sentence, hint) {id, GPS_LEVEL_##level, sentence, hint},
    GPS_FINDINGS(FINDING_ROW)
#undef FINDING_ROW
};

/* A number may come from the log of a newer version; one outside the table is "unknown". */
static const struct row *row_of(enum gps_finding finding) {
    static const struct row unknown = {"unknown", GPS_LEVEL_ERROR, "an unknown finding", ""};
    return (unsigned)finding < GPS_FINDING_COUNT ? &rows[finding] : &unknown;
}

const char *gps_finding_id(enum gps_finding finding) {
    return row_of(finding)->id;
}

enum gps_level gps_finding_level(enum gps_finding finding) {
    return row_of(finding)->level;
}

const char *gps_finding_raised(enum gps_finding finding, enum gps_level *level) {
    static const struct {
        enum gps_level level;
        const char *where;
    } raised[GPS_FINDING_COUNT] = {
#define RAISED_ROW(name, level, where) [GPS_##name] = {GPS_LEVEL_##level, where},
        GPS_RAISED_LEVELS(RAISED_ROW)
#undef RAISED_ROW
    };
    if ((unsigned)finding >= GPS_FINDING_COUNT || !raised[finding].where)
        return NULL;
    *level = raised[finding].level;
    return raised[finding].where;
}

enum gps_level gps_report_level(const struct gps_report *report) {
    enum gps_level level = gps_finding_level(report->finding);
    if (report->raised)
        (void)gps_finding_raised(report->finding, &level);
    return level;
}

const char *gps_finding_sentence(enum gps_finding finding) {
    return row_of(finding)->sentence;
}

const char *gps_finding_hint(enum gps_finding finding) {
    return row_of(finding)->hint;
}

const char *gps_report_hint(const struct gps_report *report) {
    static const char *const by_rule[GPS_FINDING_COUNT] = {
#define RULE_HINT(name, hint) [GPS_##name] = hint,
        GPS_RULE_HINTS(RULE_HINT)
#undef RULE_HINT
    };
    static const char *const by_range[GPS_FINDING_COUNT] = {
#define RANGE_HINT(name, hint) [GPS_##name] = hint,
        GPS_RANGE_HINTS(RANGE_HINT)
#undef RANGE_HINT
    };
    const bool known = report->finding < GPS_FINDING_COUNT;
    if (report->hint)
        return report->hint;
    if (known && gps_wording_is_by_range() && by_range[report->finding])
        return by_range[report->finding];
    const bool ruled = report->name && *report->name && known;
    return ruled && by_rule[report->finding] ? by_rule[report->finding]
                                             : gps_finding_hint(report->finding);
}

const char *gps_level_name(enum gps_level level) {
    return level == GPS_LEVEL_INFO ? "info" : level == GPS_LEVEL_WARNING ? "warning" : "error";
}
