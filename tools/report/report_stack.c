/*
 * report_stack.c - the stacks of a report as text, a line a frame.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/tool.h"
#include "report.h"
#include "symbols/short_name.h"
#include "symbols/user_frame.h"

char *report_place(const struct symbol_place *place) {
    char line[16] = "";
    if (place->line > 0)
        snprintf(line, sizeof(line), ":%u", place->line);
    char *function = place->function ? short_name_function(place->function) : tool_copy("");
    char *text = place->file ? tool_format("%s%sat %s%s", function, place->function ? " " : "",
                                           place->file, line)
                             : tool_copy(function);
    free(function);
    return text;
}

/* "#0 0x1b2c main at app.c:42 in /path/app"; a call that was inlined has a line of its own. */
static void print_frame(FILE *out, const char *margin, size_t number, const struct log_frame *frame,
                        struct symbols *symbols) {
    const struct symbol *symbol = symbol_find(symbols, frame);
    const char *note = symbol->note;
    for (size_t i = 0; i < symbol->count; i++) {
        char *place = report_place(&symbol->places[i]);
        char *start = tool_format("%s#%zu 0x%" PRIx64 " %s%s", margin, number, frame->offset, place,
                                  place[0] ? " " : "");
        if (i + 1 < symbol->count)
            term_line(out, "%s(inlined)", start);
        else
            term_line(out, "%sin %s%s%s%s", start, tool_or(frame->module, "?"), note ? " (" : "",
                      tool_or(note, ""), note ? ")" : "");
        free(start);
        free(place);
    }
}

void report_stack(FILE *out, const char *margin, const struct log_stack *stack, size_t max,
                  struct symbols *symbols) {
    const size_t shown = user_frame_shown(stack, symbols);
    for (size_t i = 0; i < shown && i < max; i++)
        print_frame(out, margin, i, &stack->frames[i], symbols);
}
