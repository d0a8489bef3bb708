/* attempt.c - see attempt.h. */
#include "attempt.h"

#include "directory/name.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/text.h"

int gps_attempt_claim(const struct gps_attempt *attempt, struct gps_owner *holder) {
    return gps_name_claim(gps_membership_store(), attempt->name, gps_process_self(), holder);
}

void gps_attempt_report(const struct gps_attempt *attempt, enum gps_finding finding,
                        const char *detail, const struct gps_owner *other) {
    struct gps_report report = gps_report_new(finding);
    struct gps_text why = gps_text_on(attempt->why, GPS_WHY_BYTES);
    gps_text_str(&why, detail);
    report.size = attempt->size;
    report.name = attempt->name;
    report.device = attempt->device;
    report.detail = detail;
    const struct gps_party party = {.owner = other ? *other : (struct gps_owner){0}};
    report.others = &party;
    report.other_count = other != NULL;
    gps_report_send(&report);
}

enum gps_outcome gps_attempt_private(const struct gps_attempt *attempt, const char *why,
                                     const struct gps_owner *other) {
    gps_attempt_report(attempt, GPS_SHARE_FALLBACK, why, other);
    return GPS_PRIVATE;
}
