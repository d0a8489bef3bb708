#include "format.h"

#include <string.h>

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

/* Leaves out the least important part that is left. False: nothing is left to leave out. */
static bool shrink(struct gps_line *line) {
    struct gps_report *report = &line->report;
    if (shrink_priors(report))
        return true;
    if (report->stack_count > 0) {
        report->stack_count--;
        line->omitted++;
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

struct gps_text gps_format_line(char *buffer, size_t size, struct gps_line line,
                                const struct gps_stamp *stamp, gps_format_fn *format) {
    struct gps_text text;
    do {
        text = gps_text_on(buffer, size);
        format(&text, &line, stamp);
    } while (text.cut && shrink(&line));
    return text;
}

void gps_format_api(struct gps_text *text, const char *api) {
    if (!api)
        return;
    const char *end = strstr(api, "_v");
    if (!end)
        end = strstr(api, "_pt");
    gps_text_bytes(text, api, end ? (size_t)(end - api) : strlen(api));
}

void gps_format_title(struct gps_text *text, const struct gps_report *report) {
    gps_text_str(text, gps_finding_id(report->finding));
    if (report->api) {
        gps_text_str(text, " in ");
        gps_format_api(text, report->api);
    }
}
