/* format_common.c - see format_common.h. */
#include "format_common.h"

#include <string.h>

#include "directory/record.h"

/* The longest earlier stack loses its last frame; then earlier events go. */
static bool shrink_priors(struct gps_report *report) {
    struct gps_prior *longest = &report->prior[0];
    if (report->prior_count == 0)
        return false;
    for (unsigned i = 1; i < report->prior_count; i++)
        if (report->prior[i].stack_count > longest->stack_count)
            longest = &report->prior[i];
    if (longest->stack_count > 0)
        longest->stack_count--;
    else
        report->prior_count--;
    return true;
}

bool gps_format_shrink(struct gps_format_view *view) {
    struct gps_report *report = &view->report;
    if (shrink_priors(report))
        return true;
    if (report->stack_count > 0) {
        report->stack_count--;
        view->omitted++;
    } else if (report->detail) {
        report->detail = NULL;
    } else if (report->other_count > 0) {
        report->other_count /= 2;
    } else if (report->name) {
        report->name = NULL;
    } else if (report->api) {
        report->api = NULL;
    } else {
        return false;
    }
    return true;
}

void gps_format_api(struct gps_text *text, const char *api) {
    const char *end = strstr(api, "_v");
    if (!end)
        end = strstr(api, "_pt");
    gps_text_bytes(text, api, end ? (size_t)(end - api) : strlen(api));
}

void gps_format_id(struct gps_text *text, const struct gps_id *id) {
    char hex[GPS_ID_HEX];
    gps_id_format(id, hex);
    gps_text_str(text, hex);
}

/* "2 findings (1 error), 1 repeated", and the losses if there were any. */
void gps_format_tally(struct gps_text *text, const struct gps_tally *tally) {
    gps_text_dec(text, tally->findings);
    gps_text_str(text, tally->findings == 1 ? " finding (" : " findings (");
    gps_text_dec(text, tally->errors);
    gps_text_str(text, tally->errors == 1 ? " error), " : " errors), ");
    gps_text_dec(text, tally->repeated);
    gps_text_str(text, " repeated");
    if (tally->lost != 0) {
        gps_text_str(text, ", ");
        gps_text_dec(text, tally->lost);
        gps_text_str(text, " could not be written");
    }
    if (tally->unwritten != 0) {
        gps_text_str(text, ", ");
        gps_text_dec(text, tally->unwritten);
        gps_text_str(text, " not written (log_max)");
    }
    if (tally->full)
        gps_text_str(text, "; too many call sites to count the repeats of all");
}
