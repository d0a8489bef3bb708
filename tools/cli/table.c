/* table.c - see table.h. */
#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "util/text.h"

#define TABLE_CELL_MAX    512
#define TABLE_COLUMNS_MAX 16

/* Text from outside may hold anything: the copy is printable, and its width is known. */
static struct table_cell clean_cell(const char *text, enum term_colour colour) {
    char clean[TABLE_CELL_MAX];
    struct gps_text out = GPS_TEXT(clean);
    size_t width = 0;
    gps_text_plain(&out, text);
    for (const char *c = clean; *c != 0; c++)
        width += ((unsigned char)*c & 0xc0) != 0x80;
    return (struct table_cell){tool_copy(clean), width, colour};
}

void table_cell(struct table *table, enum term_colour colour, const char *format, ...) {
    char text[TABLE_CELL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    table->cells = tool_grow(table->cells, table->cell_count, sizeof(*table->cells));
    table->cells[table->cell_count++] = clean_cell(text, colour);
}

static void print_cell(FILE *out, const struct table *table, size_t column, const size_t *widths,
                       const struct table_cell *cell) {
    const int padding = (int)(widths[column] - cell->width);
    const bool right = table->columns[column].right, last = column + 1 == table->column_count;
    const char *start = cell->colour == TERM_PLAIN ? "" : term_colour_on(out, cell->colour);
    const char *gap = column == 0                                       ? ""
                      : table->columns[column - 1].right == TABLE_CLOSE ? " "
                                                                        : "  ";
    fprintf(out, "%s%*s%s%s%s%*s", gap, right ? padding : 0, "", start, cell->text,
            start[0] ? term_colour_on(out, TERM_PLAIN) : "", right || last ? 0 : padding, "");
}

static void measure(const struct table *table, size_t *widths) {
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = strlen(tool_or(table->columns[i].title, ""));
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t *width = &widths[i % table->column_count];
        if (table->cells[i].width > *width)
            *width = table->cells[i].width;
    }
}

static void print_titles(FILE *out, const struct table *table, const size_t *widths,
                         const char *margin) {
    fputs(margin, out);
    for (size_t i = 0; i < table->column_count; i++) {
        struct table_cell title =
            clean_cell(table->columns[i].title, out == stdout ? TERM_BOLD : TERM_PLAIN);
        print_cell(out, table, i, widths, &title);
        free(title.text);
    }
    putc('\n', out);
}

void table_print(FILE *out, struct table *table, const char *margin) {
    size_t widths[TABLE_COLUMNS_MAX];
    measure(table, widths);
    if (table->columns[0].title)
        print_titles(out, table, widths, margin);
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t column = i % table->column_count;
        if (column == 0)
            fputs(margin, out);
        print_cell(out, table, column, widths, &table->cells[i]);
        free(table->cells[i].text);
        if (column + 1 == table->column_count)
            putc('\n', out);
    }
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}
