#include "rule_request.h"

#include "directory/name.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/text.h"

int gps_rule_request_take(const struct gps_rule_request *request, struct gps_owner *holder) {
    return gps_name_claim(gps_membership_store(), request->name, gps_process_self(), holder);
}

void gps_rule_request_report(const struct gps_rule_request *request, enum gps_finding finding,
                             const char *detail, const struct gps_owner *other) {
    struct gps_report report = gps_report_new(finding);
    struct gps_text why = GPS_TEXT(request->why->text);
    gps_text_str(&why, detail);
    report.size = request->size;
    report.name = request->name;
    report.device = request->device;
    report.detail = detail;
    const struct gps_party party = {.owner = other ? *other : (struct gps_owner){0}};
    report.others = &party;
    report.other_count = other != NULL;
    gps_report_send(&report);
}

enum gps_outcome gps_rule_request_private(const struct gps_rule_request *request, const char *why,
                                          const struct gps_owner *other) {
    gps_rule_request_report(request, GPS_SHARE_FALLBACK, why, other);
    return GPS_PRIVATE;
}
