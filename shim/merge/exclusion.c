#define XXH_INLINE_ALL
#include <xxhash.h>

#include "exclusion.h"

#include <stdatomic.h>
#include <string.h>

#include "driver/scope.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"

#define LATELY_5S (5 * GPS_SECOND)

enum { NAMED = 8 /* in the report */ };

static _Atomic bool happened;
GPS_FORGOTTEN(happened);

static uint64_t rule_sum(const struct gps_rule *rule) {
    struct gps_rule plain = *rule;
    plain.line = 0; /* the rule's place in the file is no part of it */
    memset(plain.lines, 0, sizeof(plain.lines));
    return XXH3_64bits(&plain, sizeof(plain));
}

static struct gps_exclusion exclusion_describe(const struct gps_area *area) {
    struct gps_exclusion exclusion;
    memset(&exclusion, 0, sizeof(exclusion));
    exclusion.size = area->size;
    exclusion.index = area->index;
    exclusion.rule = rule_sum(area->rule);
    struct gps_text text = GPS_TEXT(exclusion.program);
    gps_text_str(&text, gps_process_self()->command);
    text = GPS_TEXT(exclusion.name);
    gps_text_str(&text, area->rule->name);
    text = GPS_TEXT(exclusion.caller);
    gps_text_str(&text, area->caller);
    return exclusion;
}

uint64_t gps_exclusion_times(const struct gps_area *area) {
    const struct gps_exclusion exclusion = exclusion_describe(area);
    return gps_membership_join() == 0 ? gps_exclusions_times(gps_membership_store(), &exclusion)
                                      : 0;
}

/* --- allocations that may have caused it --- */

/* Whether a block of it was merged at `since` or later, and still is. */
static bool area_is_merged_since(const struct gps_area *area, uint64_t since) {
    for (unsigned i = 0; i < area->count; i++)
        if (gps_block_is_read_only(&area->blocks[i]) && area->blocks[i].swapped >= since)
            return true;
    return false;
}

/* The caller has the lock. */
static bool is_any_merged(uint64_t since) {
    struct gps_area *area = gps_area_next(NULL);
    while (area && !area_is_merged_since(area, since))
        area = gps_area_next(area);
    return area;
}

static void exclusion_add_name(struct gps_text *text, const char *before,
                               const struct gps_area *area, unsigned n) {
    if (n == NAMED)
        gps_text_str(text, ", ...");
    if (n >= NAMED)
        return;
    gps_text_str(text, n ? ", " : before);
    gps_text_size(text, area->size);
    gps_text_add(text, " (index %lu of [region %s], by %s)", area->index, area->rule->name,
                 *area->caller ? area->caller : "code in no module");
}

/* Notes allocations with blocks that were merged at `since` or later: those that are excluded from
 * now on, or those that are not yet. */
static unsigned note_some(struct gps_text *text, const char *before, bool excluded,
                          uint64_t since) {
    unsigned count = 0;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        struct gps_exclusion exclusion = exclusion_describe(area);
        exclusion.times = since ? GPS_EXCLUDED : area->times + 1;
        if (!area_is_merged_since(area, since) || (exclusion.times >= GPS_EXCLUDED) != excluded)
            continue;
        gps_exclusions_add(gps_membership_store(), &exclusion);
        exclusion_add_name(text, before, area, count++);
    }
    return count;
}

/* The caller has the lock. The file is small, and this process is about to end. */
static unsigned note_all(struct gps_text *text) {
    const uint64_t lately = gps_clock_monotonic() - LATELY_5S;
    const uint64_t since = is_any_merged(lately) ? lately : 0;
    const unsigned excluded = note_some(text, "excluded: ", true, since);
    return excluded + note_some(text, excluded ? "; suspected: " : "suspected: ", false, since);
}

void gps_exclusion_record(void) {
    char detail[1024];
    struct gps_text text = GPS_TEXT(detail);
    if (atomic_exchange(&happened, true))
        return;
    GPS_SCOPE();
    gps_area_lock();
    const unsigned count = gps_membership_store() ? note_all(&text) : 0;
    gps_area_unlock();
    if (count) {
        struct gps_report report = gps_report_new(GPS_MERGE_WRITTEN);
        report.detail = detail;
        report.count = 1;
        gps_report_send(&report);
    }
}
