/*
 * suppress_match.c - whether a suppression matches a finding.
 */
#include <string.h>

#include "cli/tool.h"
#include "suppress.h"

/* A key that is not given matches everything; one that is given does not match an unknown fact. */
static bool fits(const char *glob, const char *fact) {
    return !glob || (fact && gps_glob_match(glob, fact));
}

static bool fits_function(const char *glob, const struct symbol *symbol) {
    if (!glob)
        return true;
    for (size_t i = 0; i < symbol->count; i++) {
        const struct symbol_place *place = &symbol->places[i];
        if (fits(glob, place->function) || fits(glob, place->bare) || fits(glob, place->plain))
            return true;
    }
    return false;
}

static bool fits_stack(const struct suppression *section, const struct log_stack *stack,
                       struct symbols *symbols) {
    for (size_t i = 0; i < stack->count; i++) {
        const struct log_frame *frame = &stack->frames[i];
        const char *module = frame->module ? tool_base_name(frame->module) : NULL;
        if (fits(section->keys[SUPPRESS_MODULE], module) &&
            fits_function(section->keys[SUPPRESS_FUNCTION], symbol_find(symbols, frame)))
            return true;
    }
    return false;
}

static bool fits_stacks(const struct suppression *section, const struct log_line *line,
                        struct symbols *symbols) {
    if (!section->keys[SUPPRESS_MODULE] && !section->keys[SUPPRESS_FUNCTION])
        return true;
    if (fits_stack(section, &line->stack, symbols))
        return true;
    for (size_t i = 0; i < line->prior.count; i++)
        if (fits_stack(section, &line->prior.events[i].stack, symbols))
            return true;
    return false;
}

static bool matches(const struct suppression *section, const struct log_line *line,
                    struct symbols *symbols) {
    const char *finding = section->keys[SUPPRESS_FINDING];
    return (!finding || strcmp(finding, line->finding) == 0) &&
           fits(section->keys[SUPPRESS_NAME], line->name) &&
           fits(section->keys[SUPPRESS_COMMAND], line->process.command) &&
           fits_stacks(section, line, symbols);
}

void suppress_aggregate(const struct suppressions *suppressions, struct aggregate *aggregate,
                        struct symbols *symbols) {
    for (size_t i = 0; i < aggregate->count; i++)
        for (size_t j = 0; j < suppressions->count; j++)
            if (matches(&suppressions->sections[j], aggregate->groups[i]->first, symbols))
                aggregate->groups[i]->suppressed = true;
}
