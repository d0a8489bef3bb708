/*
 * report_stack.c - the stacks of a report as text, a line a frame.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "report.h"
#include "symbols/short_name.h"
#include "symbols/user_frame.h"

/* "main at app.c:42 ", the known part of it. */
static void print_place(FILE *out, const struct symbol_place *place) {
    if (place->function) {
        char *function = short_name_function(place->function);
        term_plain(out, function);
        fputs(" ", out);
        free(function);
    }
    if (!place->file)
        return;
    fputs("at ", out);
    term_plain(out, place->file);
    if (place->line > 0)
        fprintf(out, ":%u", place->line);
    fputs(" ", out);
}

/* "#0 0x1b2c main at app.c:42 in /path/app"; a call that was inlined has a line of its own. */
static void print_frame(FILE *out, const char *margin, size_t number, const struct log_frame *frame,
                        struct symbols *symbols) {
    const struct symbol *symbol = symbol_find(symbols, frame);
    for (size_t i = 0; i < symbol->count; i++) {
        fprintf(out, "%s#%zu 0x%" PRIx64 " ", margin, number, frame->offset);
        print_place(out, &symbol->places[i]);
        if (i + 1 < symbol->count)
            fputs("(inlined)\n", out);
    }
    fputs("in ", out);
    term_plain(out, frame->module);
    fprintf(out, symbol->note ? " (%s)\n" : "%s\n", symbol->note ? symbol->note : "");
}

void report_stack(FILE *out, const char *margin, const struct log_stack *stack, size_t max,
                  struct symbols *symbols) {
    const size_t shown = user_frame_shown(stack, symbols);
    for (size_t i = 0; i < shown && i < max; i++)
        print_frame(out, margin, i, &stack->frames[i], symbols);
}
