/*
 * report_stack.c - the stacks of a report as text.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "brief.h"
#include "report_text.h"
#include "trace.h"

/* "main at app.c:42": what of it is known, with a blank behind it. */
static void print_place(const struct printer *to, const struct symbol_place *place) {
    if (place->function != NULL) {
        char *function = brief_function(place->function);
        term_plain(to->out, function);
        fputs(" ", to->out);
        free(function);
    }
    if (place->file == NULL)
        return;
    fputs("at ", to->out);
    term_plain(to->out, place->file);
    if (place->line > 0)
        fprintf(to->out, ":%u", place->line);
    fputs(" ", to->out);
}

/* "#0 0x1b2c main at app.c:42 in /path/app"; a call that was inlined has a line of its own. */
static void print_frame(const struct printer *to, size_t number, const struct log_frame *frame) {
    const struct symbol *symbol = symbol_find(to->report->symbols, frame);
    for (size_t i = 0; i < symbol->count; i++) {
        fprintf(to->out, TEXT_INDENT "    #%zu 0x%" PRIx64 " ", number, frame->offset);
        print_place(to, &symbol->places[i]);
        if (i + 1 < symbol->count)
            fputs("(inlined)\n", to->out);
    }
    fputs("in ", to->out);
    term_plain(to->out, frame->module);
    fprintf(to->out, symbol->note != NULL ? " (%s)\n" : "%s\n",
            symbol->note != NULL ? symbol->note : "");
}

void text_stack(const struct printer *to, const struct log_stack *stack) {
    const size_t count = trace_told(stack, to->report->symbols);
    for (size_t i = 0; i < count; i++)
        print_frame(to, i, &stack->frames[i]);
}
