/*
 * report_contents.c - a table of contents before a long report.
 *
 *     =========     2x error  double-free  cudaFree  denoise at five.c:87
 *
 * The id and the call lead to the finding in the report. The place tells it from similar ones: it
 * is the user's innermost function, of an earlier event where the finding has no stack of its own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "log/log.h"
#include "report_format.h"
#include "symbols/short_name.h"
#include "symbols/user_frame.h"

#define SHORT_MAX 3 /* findings that are read without a table */

struct widths {
    int count, finding, api;
};

enum term_colour report_level_colour(enum gps_level level) {
    static const enum term_colour colours[] = {TERM_BOLD, TERM_YELLOW, TERM_RED};
    return colours[level];
}

static const char *call_of(const struct log_line *line) {
    return line->api ? line->api : "-";
}

static void widen(int *width, size_t length) {
    if (length < 64 && (int)length > *width)
        *width = (int)length;
}

static void measure(struct widths *widths, const struct aggregate_group *group) {
    char count[24];
    widen(&widths->count, (size_t)snprintf(count, sizeof(count), "%" PRIu64, group->count));
    widen(&widths->finding, strlen(group->first->finding));
    widen(&widths->api, strlen(call_of(group->first)));
}

static void print_cell(FILE *out, const char *text, int width) {
    const int length = (int)strlen(text);
    term_plain(out, text);
    fprintf(out, "%*s", length < width ? width - length + 2 : 2, "");
}

/* "denoise at five.c:87", as much as is known of it; malloc'ed. */
static char *place_of(const struct log_line *line, struct symbols *symbols) {
    const struct log_stack *stack = aggregate_stack(line);
    const struct symbol_place *place = user_frame_place(stack, symbols);
    const struct log_frame *frame = user_frame_find(stack);
    if (!frame)
        return tool_format("in %s", line->process.command ? line->process.command : "?");
    if (!place)
        place = &symbol_find(symbols, frame)->places[0];
    char *function = short_name_function(place->bare ? place->bare : "?");
    char *text;
    if (place->file)
        text = tool_format("%s at %s:%u", function, tool_base_name(place->file), place->line);
    else if (place->bare)
        text = tool_format("%s in %s", function, tool_base_name(frame->module));
    else
        text = tool_format("%s+0x%" PRIx64, tool_base_name(frame->module), frame->offset);
    free(function);
    return text;
}

static void print_row(FILE *out, const struct widths *widths, const struct aggregate_group *group,
                      struct symbols *symbols) {
    const struct log_line *line = group->first;
    char *place = place_of(line, symbols);
    fprintf(out, REPORT_INDENT "%*" PRIu64 "x %s%-7s%s  ", widths->count, group->count,
            term_colour_on(out, report_level_colour(line->level)), gps_level_name(line->level),
            term_colour_on(out, TERM_PLAIN));
    print_cell(out, line->finding, widths->finding);
    print_cell(out, call_of(line), widths->api);
    term_plain(out, place);
    fputs("\n", out);
    free(place);
}

void report_contents(FILE *out, const struct report *report) {
    const struct aggregate *aggregate = &report->aggregate;
    struct widths widths = {0, 0, 0};
    size_t shown = 0;
    for (size_t i = 0; i < aggregate->count; i++)
        if (!aggregate->groups[i]->suppressed) {
            measure(&widths, aggregate->groups[i]);
            shown++;
        }
    if (shown <= SHORT_MAX)
        return;
    fprintf(out, REPORT_MARGIN "GPUSHARE CONTENTS: %zu findings\n", shown);
    for (size_t i = 0; i < aggregate->count; i++)
        if (!aggregate->groups[i]->suppressed)
            print_row(out, &widths, aggregate->groups[i], report->symbols);
    fputs("=========\n", out);
}
