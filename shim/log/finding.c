/* finding.c - looks findings up in the catalogue of gpushare/finding.h. */

#include <stddef.h>
#include <stdint.h>

#include "log.h"
#include "wording.h"

/* A newer version's log may have other numbers: the entry behind the catalogue stands for them. */
#define ALL                                                                                        \
    FINDING(FINDING_COUNT, "unknown", ERROR, "an unknown finding", "")                             \
    GPS_FINDINGS(FINDING)                                                                          \
    GPS_RAISED_LEVELS(RAISED)                                                                      \
    GPS_RULE_HINTS(RULE_HINT)                                                                      \
    GPS_RANGE_HINTS(RANGE_HINT)

/* clang-format off */
/* The texts, in a row. The table has their places: pointers would be relocated in every process. */
static const struct texts {
    char none[1];
#define FINDING(name, id, level, sentence, hint)                                                   \
    char name##_id[sizeof(id)], name##_sentence[sizeof(sentence)], name##_hint[sizeof(hint)];
#define RAISED(name, level, where) char name##_where[sizeof(where)];
#define RULE_HINT(name, hint) char name##_rule_hint[sizeof(hint)];
#define RANGE_HINT(name, hint) char name##_range_hint[sizeof(hint)];
    ALL
#undef FINDING
#undef RAISED
#undef RULE_HINT
#undef RANGE_HINT
} texts = {
#define FINDING(name, id, level, sentence, hint)                                                   \
    .name##_id = id, .name##_sentence = sentence, .name##_hint = hint,
#define RAISED(name, level, where) .name##_where = where,
#define RULE_HINT(name, hint) .name##_rule_hint = hint,
#define RANGE_HINT(name, hint) .name##_range_hint = hint,
    ALL
#undef FINDING
#undef RAISED
#undef RULE_HINT
#undef RANGE_HINT
};

static const struct row {
    uint16_t id, sentence, hint;
    uint16_t raised_where;          /* 0: nowhere */
    uint16_t rule_hint, range_hint; /* other ones, or 0 */
    uint8_t level, raised;
} rows[GPS_FINDING_COUNT + 1] = {
#define AT(text) offsetof(struct texts, text)
#define FINDING(name, id_, level_, sentence_, hint_)                                               \
    [GPS_##name].id = AT(name##_id), [GPS_##name].sentence = AT(name##_sentence),                  \
    [GPS_##name].hint = AT(name##_hint), [GPS_##name].level = GPS_LEVEL_##level_,
#define RAISED(name, level_, where)                                                                \
    [GPS_##name].raised = GPS_LEVEL_##level_, [GPS_##name].raised_where = AT(name##_where),
#define RULE_HINT(name, hint) [GPS_##name].rule_hint = AT(name##_rule_hint),
#define RANGE_HINT(name, hint) [GPS_##name].range_hint = AT(name##_range_hint),
    ALL
};
/* clang-format on */

static const char *text_at(uint16_t at) {
    return (const char *)&texts + at;
}

static const struct row *row_of(enum gps_finding finding) {
    return &rows[(unsigned)finding < GPS_FINDING_COUNT ? finding : GPS_FINDING_COUNT];
}

const char *gps_finding_id(enum gps_finding finding) {
    return text_at(row_of(finding)->id);
}

enum gps_level gps_finding_level(enum gps_finding finding) {
    return row_of(finding)->level;
}

const char *gps_finding_raised(enum gps_finding finding, enum gps_level *level) {
    const struct row *row = row_of(finding);
    if (!row->raised_where)
        return NULL;
    *level = row->raised;
    return text_at(row->raised_where);
}

enum gps_level gps_report_level(const struct gps_report *report) {
    const struct row *row = row_of(report->finding);
    return report->ordinary                      ? GPS_LEVEL_INFO
           : report->raised && row->raised_where ? row->raised
                                                 : row->level;
}

const char *gps_finding_sentence(enum gps_finding finding) {
    return text_at(row_of(finding)->sentence);
}

const char *gps_finding_hint(enum gps_finding finding) {
    return text_at(row_of(finding)->hint);
}

const char *gps_report_hint(const struct gps_report *report) {
    const struct row *row = row_of(report->finding);
    if (report->hint)
        return report->hint;
    if (row->range_hint && gps_wording_is_by_range())
        return text_at(row->range_hint);
    return text_at(row->rule_hint && report->name && *report->name ? row->rule_hint : row->hint);
}

const char *gps_level_name(enum gps_level level) {
    return level == GPS_LEVEL_INFO ? "info" : level == GPS_LEVEL_WARNING ? "warning" : "error";
}
