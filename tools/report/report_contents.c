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

#include "cli/table.h"
#include "cli/tool.h"
#include "log/log.h"
#include "report.h"
#include "symbols/short_name.h"
#include "symbols/user_frame.h"

#define SHORT_MAX 3 /* findings that are read without a table */

enum term_colour report_level_colour(enum gps_level level) {
    static const enum term_colour colours[] = {TERM_BOLD, TERM_YELLOW, TERM_RED};
    return colours[level];
}

/* "denoise at five.c:87", as much as is known of it; malloc'ed. */
static char *place_of(const struct log_line *line, struct symbols *symbols) {
    const struct log_stack *stack = aggregate_stack(line);
    const struct symbol_place *place = user_frame_place(stack, symbols);
    const struct log_frame *frame = user_frame_find(stack);
    if (!frame)
        return tool_format("in %s", tool_or(line->process.command, "?"));
    if (!place)
        place = &symbol_find(symbols, frame)->places[0];
    char *function = short_name_function(tool_or(place->bare, "?"));
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

static void add_row(struct table *table, const struct aggregate_group *group,
                    struct symbols *symbols) {
    const struct log_line *line = group->first;
    char *place = place_of(line, symbols);
    table_cell(table, TERM_PLAIN, "%" PRIu64 "x", group->count);
    table_cell(table, report_level_colour(line->level), "%-7s", gps_level_name(line->level));
    table_cell(table, TERM_PLAIN, "%s", line->finding);
    table_cell(table, TERM_PLAIN, "%s", tool_or(line->api, "-"));
    table_cell(table, TERM_PLAIN, "%s", place);
    free(place);
}

void report_contents(FILE *out, const struct report *report) {
    static const struct table_column columns[] = {
        {NULL, TABLE_CLOSE}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    const struct aggregate *aggregate = &report->aggregate;
    struct table table = TABLE(columns);
    size_t shown = 0;
    for (size_t i = 0; i < aggregate->count; i++)
        shown += !aggregate->groups[i]->suppressed;
    if (shown <= SHORT_MAX)
        return;
    for (size_t i = 0; i < aggregate->count; i++)
        if (!aggregate->groups[i]->suppressed)
            add_row(&table, aggregate->groups[i], report->symbols);
    fprintf(out, REPORT_MARGIN "GPUSHARE CONTENTS: %zu findings\n", shown);
    table_print(out, &table, REPORT_INDENT);
    fputs("=========\n", out);
}
