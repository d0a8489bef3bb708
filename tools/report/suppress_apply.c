/*
 * suppress_apply.c - marks the findings of a report that a suppression matches, and writes a
 * suppression for each of the others.
 */

#include "cli/tool.h"
#include "suppress.h"
#include "symbols/user_frame.h"

/* --- matching --- */

/* A key that is not given matches everything; one that is given does not match an unknown fact. */
static bool suppress_glob_fits(const char *glob, const char *fact) {
    return !glob || (fact && gps_glob_match(glob, fact));
}

static bool fits_function(const char *glob, const struct symbol *symbol) {
    if (!glob)
        return true;
    TOOL_EACH(const struct symbol_place, place, symbol->places, symbol->count) {
        if (suppress_glob_fits(glob, place->function) || suppress_glob_fits(glob, place->bare) ||
            suppress_glob_fits(glob, place->plain))
            return true;
    }
    return false;
}

static bool fits_stack(const struct suppression *section, const struct log_stack *stack,
                       struct symbols *symbols) {
    TOOL_EACH(const struct log_frame, frame, stack->frames, stack->count) {
        if (suppress_glob_fits(section->keys[SUPPRESS_MODULE], log_frame_module(frame)) &&
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

/* A frame of an unknown module may be anybody's. */
static bool fits_callers(const char *glob, const struct log_stack *stack) {
    bool any = false;
    for (size_t i = 0; glob && i < stack->count; i++) {
        const char *module = log_frame_module(&stack->frames[i]);
        if (module && !user_frame_is(&stack->frames[i]))
            continue;
        if (!suppress_glob_fits(glob, module))
            return false;
        any = true;
    }
    return !glob || any;
}

static bool suppress_matches(const struct suppression *section, const struct log_line *line,
                             struct symbols *symbols) {
    const char *finding = section->keys[SUPPRESS_FINDING], *hash = section->keys[SUPPRESS_STACK];
    return (!finding || strcmp(finding, line->finding) == 0) &&
           suppress_glob_fits(section->keys[SUPPRESS_NAME], line->name) &&
           suppress_glob_fits(section->keys[SUPPRESS_COMMAND], line->process.command) &&
           fits_callers(section->keys[SUPPRESS_CALLERS], aggregate_stack(line)) &&
           (!hash || strtoull(hash, NULL, 16) == user_frame_hash(line, symbols)) &&
           fits_stacks(section, line, symbols);
}

void suppress_aggregate(struct suppressions *suppressions, struct aggregate *aggregate,
                        struct symbols *symbols) {
    for (size_t i = 0; i < aggregate->count; i++)
        TOOL_EACH(struct suppression, section, suppressions->sections, suppressions->count) {
            if (!suppress_matches(section, aggregate->groups[i]->first, symbols))
                continue;
            aggregate->groups[i]->suppressed = section->used = true;
            aggregate->groups[i]->known = section->known; /* the user's come last */
        }
}

/* --- writing --- */

/* Writes the name as a glob that an INI file can hold: a character that has a meaning in either
 * becomes ?, and a name that is longer than a glob on a file name may be ends in *. */
static void print_glob(FILE *out, const char *key, const char *name) {
    const size_t size = GPS_GLOB_BYTES - 1;
    size_t length = strlen(name);
    fprintf(out, "%s = ", key);
    for (size_t i = 0; i < (length > size ? size - 1 : length); i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c > ' ' && c < 0x7f && !strchr("[]\\;#\"'?", c);
        putc(plain || (c == ' ' && i > 0) ? c : '?', out);
    }
    fputs(length > size ? "*\n" : "\n", out);
}

static void print_section(FILE *out, const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    const struct log_frame *frame = user_frame_find(aggregate_stack(line));
    const uint64_t hash = user_frame_hash(line, symbols);
    const bool known = suppress_finding(line->finding) >= 0;
    fprintf(out, "[suppress %.24s-%08x]\n", known ? line->finding : "unknown", (unsigned)hash);
    if (known)
        fprintf(out, "finding = %s\n", line->finding);
    const char *function = frame ? symbol_find(symbols, frame)->places[0].function : NULL;
    if (frame)
        print_glob(out, "module", tool_or(log_frame_module(frame), "*"));
    if (function)
        print_glob(out, "function", function);
    if (aggregate_stack(line)->count > 0)
        fprintf(out, "stack = %0*" PRIx64 "\n", SUPPRESS_HASH_DIGITS, hash);
    if (!frame && line->process.command)
        print_glob(out, "command", line->process.command);
    fputc('\n', out);
}

void suppress_print(FILE *out, const struct aggregate *aggregate, struct symbols *symbols) {
    for (size_t i = 0; i < aggregate->count; i++)
        if (!aggregate->groups[i]->suppressed)
            print_section(out, aggregate->groups[i], symbols);
}
