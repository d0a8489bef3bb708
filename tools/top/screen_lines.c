/* screen_lines.c - see screen_lines.h. */
#include "screen_lines.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/tool.h"
#include "util/text.h"

static bool is_utf8(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

const char *screen_mark(void) {
    return is_utf8() ? "\u2026" : "~";
}

/* The number of a character's bytes, and of its columns. */
static size_t next_character(const char *text, int *columns) {
    mbstate_t state = {0};
    wchar_t character;
    const size_t bytes = mbrtowc(&character, text, MB_CUR_MAX, &state);
    const bool known = bytes > 0 && bytes <= MB_CUR_MAX;
    *columns = known ? wcwidth(character) : 1;
    return known ? bytes : 1;
}

/* How many bytes of the text fit into `width` columns. */
static size_t fitting(const char *text, int width) {
    size_t at = 0;
    for (int columns; text[at] != 0;) {
        const size_t bytes = next_character(text + at, &columns);
        width -= columns > 0 ? columns : 0;
        if (width < 0)
            break;
        at += bytes;
    }
    return at;
}

struct screen_line screen_line(const char *text, int width, enum term_colour colour) {
    const size_t size = strlen(text) + 1;
    char *line = tool_resize(NULL, size, 1);
    struct gps_text out = gps_text_on(line, size);
    gps_text_plain(&out, text);
    for (char *c = line; *c != 0 && !is_utf8(); c++)
        *c = (unsigned char)*c >= 0x80 ? '?' : *c;
    if (line[fitting(line, width)] != 0) {
        char *whole = line;
        line = tool_format("%.*s%s", (int)fitting(whole, width - 1), whole, screen_mark());
        free(whole);
    }
    return (struct screen_line){line, colour, false};
}

/* --- collecting what is printed --- */

struct print {
    FILE *file;
    char *text;
    size_t size;
};

static void begin(struct print *print) {
    *print = (struct print){.text = NULL};
    print->file = open_memstream(&print->text, &print->size);
    if (!print->file)
        tool_no_memory();
}

static void add(struct screen_lines *lines, const char *text, int width, enum term_colour colour,
                bool title) {
    lines->lines = tool_grow(lines->lines, lines->count, sizeof(*lines->lines));
    lines->lines[lines->count] = screen_line(text, width, colour);
    lines->lines[lines->count++].title = title;
}

/* Adds a table: a line of titles, and the rows. */
static void end_table(struct print *print, struct usage_rows *rows, int width,
                      struct screen_lines *lines) {
    size_t row = 0;
    fclose(print->file);
    char *rest = print->text;
    for (char *line; (line = strsep(&rest, "\n")) && rest; row++)
        add(lines, line, width, row > 0 && row <= rows->count ? rows->colours[row - 1] : TERM_PLAIN,
            row == 0);
    free(print->text);
    free(rows->colours);
    *rows = (struct usage_rows){.count = 0};
}

/* --- the parts --- */

char *screen_lines_totals(const struct usage *usage) {
    struct print print;
    begin(&print);
    usage_text_totals(print.file, usage);
    fclose(print.file);
    print.text[strcspn(print.text, "\n")] = 0;
    return print.text;
}

void screen_lines_body(struct screen_lines *lines, const struct usage *usage, int width) {
    const struct usage_layout layout = {.narrow = width < USAGE_WIDE, .mark = screen_mark()};
    struct usage_rows rows = {.count = 0};
    struct print print;
    screen_lines_free(lines);
    if (usage->accounting.gpu_count > 1) {
        begin(&print);
        usage_text_gpus(print.file, usage, &rows);
        end_table(&print, &rows, width, lines);
        add(lines, "", width, TERM_PLAIN, false);
    }
    begin(&print);
    usage_text_processes(print.file, usage, &layout, &rows);
    end_table(&print, &rows, width, lines);
    add(lines, usage->process_count > 0 ? "" : "No process shares memory.", width, TERM_PLAIN,
        false);
    begin(&print);
    usage_text_regions(print.file, usage, &layout, &rows);
    end_table(&print, &rows, width, lines);
}

void screen_lines_findings(struct screen_lines *lines, const struct usage *usage, int width,
                           int height) {
    struct usage_rows rows = {.count = 0};
    struct print print;
    screen_lines_free(lines);
    begin(&print);
    usage_text_levels(print.file, usage);
    fclose(print.file);
    print.text[strcspn(print.text, "\n")] = 0;
    add(lines, print.text, width, TERM_BOLD, false);
    free(print.text);
    begin(&print);
    usage_text_findings(print.file, usage, height > 12 ? (size_t)(height - 8) / 4 : 0, &rows);
    end_table(&print, &rows, width, lines);
}

void screen_lines_free(struct screen_lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->lines[i].text);
    free(lines->lines);
    *lines = (struct screen_lines){.count = 0};
}
