/*
 * suppress_make.c - writes suppressions for the findings of a report.
 */
#include <string.h>

#include "cli/tool.h"
#include "config/inifile.h"
#include "suppress.h"
#include "symbols/user_frame.h"

/* Writes the name as a glob that an INI file can hold: a character that has a meaning in either
 * becomes ?, and a name that is too long for a line ends in *. */
static void print_glob(FILE *out, const char *key, const char *name) {
    size_t size = GPS_INI_LINE - strlen(key) - strlen(" = ");
    size_t length = strlen(name);
    fprintf(out, "%s = ", key);
    for (size_t i = 0; i < length && i < size - 1; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c > ' ' && c < 0x7f && !strchr("[]\\;#\"'?", c);
        putc(plain || (c == ' ' && i > 0) ? c : '?', out);
    }
    fputs(length < size ? "\n" : "*\n", out);
}

static void print_section(FILE *out, const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    const struct log_frame *frame = user_frame_find(aggregate_stack(line));
    bool known = suppress_knows(line->finding);
    fprintf(out, "[suppress %.24s-%08x]\n", known ? line->finding : "unknown",
            (unsigned)user_frame_hash(line, symbols));
    if (known)
        fprintf(out, "finding = %s\n", line->finding);
    const char *function = frame ? symbol_find(symbols, frame)->places[0].function : NULL;
    if (frame)
        print_glob(out, "module", tool_base_name(frame->module));
    if (function)
        print_glob(out, "function", function);
    if (!frame && line->process.command)
        print_glob(out, "command", line->process.command);
    fputc('\n', out);
}

void suppress_print(FILE *out, const struct aggregate *aggregate, struct symbols *symbols) {
    for (size_t i = 0; i < aggregate->count; i++)
        if (!aggregate->groups[i]->suppressed)
            print_section(out, aggregate->groups[i], symbols);
}
