/*
 * line_delta.c - compares two lines field by field; a field ends with a quotation mark.
 *
 * A delta has the fields that differ. A run of fields that do not is one byte, which counts them,
 * of those control characters that are nowhere in JSON.
 */
#include "logs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

enum { RUN_OF_0 = 0x0d, RUN_MAX = 0x1f };

static bool is_run(char c) {
    return c > RUN_OF_0 && c <= RUN_MAX;
}

static size_t length_of(const char *field) {
    const size_t length = strcspn(field, "\"");
    return length + (field[length] != 0);
}

char *line_delta_make(const char *base, const char *text) {
    char *delta = tool_resize(NULL, strlen(text) + 1, 1), *end = delta;
    while (*text != 0) {
        const size_t old = length_of(base), new = length_of(text);
        if (old != new || memcmp(base, text, new) != 0)
            end = mempcpy(end, text, new);
        else if (end > delta && is_run(end[-1]) && end[-1] < RUN_MAX)
            end[-1]++;
        else
            *end++ = RUN_OF_0 + 1;
        base += old;
        text += new;
    }
    *end++ = 0;
    return tool_resize(delta, (size_t)(end - delta), 1);
}

char *line_delta_apply(const char *base, const char *delta) {
    char *text = tool_resize(NULL, strlen(base) + strlen(delta) + 1, 1), *end = text;
    for (int run = 0; run > 0 || *delta != 0; run -= run > 0) {
        if (run == 0 && is_run(*delta))
            run = *delta++ - RUN_OF_0;
        const size_t old = length_of(base), new = run > 0 ? old : length_of(delta);
        end = mempcpy(end, run > 0 ? base : delta, new);
        base += old;
        delta += run > 0 ? 0 : new;
    }
    *end = 0;
    return text;
}
