/* table.c - see table.h. */
#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "util/text.h"

#define TABLE_CELL_MAX    512
#define TABLE_COLUMNS_MAX 16
#define WRAP_MIN          20 /* a narrower last column is left to the terminal */

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

/* How much of the text goes into a line of this width: whole words, one at least. */
static size_t fitting(const char *text, size_t width) {
    size_t end = strcspn(text, " "), next = end;
    while (text[next] != 0) {
        next = end + 1 + strcspn(text + end + 1, " ");
        if (next > width)
            break;
        end = next;
    }
    return end;
}

/* In lines that begin in the same column. */
static void print_wrapped(FILE *out, const char *text, size_t column) {
    const size_t terminal = term_width(out);
    const size_t width = terminal > column + WRAP_MIN ? terminal - column : SIZE_MAX;
    for (;;) {
        const size_t length = fitting(text, width);
        fprintf(out, "%.*s", (int)length, text);
        text += length;
        if (*text == 0)
            return;
        fprintf(out, "\n%*s", (int)column, "");
        text++;
    }
}

static void print_cell(FILE *out, const struct table *table, size_t column, const size_t *widths,
                       const struct table_cell *cell, size_t *at) {
    const size_t padding = widths[column] - cell->width;
    const bool right = table->columns[column].right, last = column + 1 == table->column_count;
    const size_t gap = column == 0 ? 0 : table->columns[column - 1].right == TABLE_CLOSE ? 1 : 2;
    *at += gap + (right ? padding : 0);
    fprintf(out, "%*s%s", (int)(gap + (right ? padding : 0)), "",
            cell->colour == TERM_PLAIN ? "" : term_colour_on(out, cell->colour));
    if (last)
        print_wrapped(out, cell->text, *at);
    else
        fputs(cell->text, out);
    fprintf(out, "%s%*s", cell->colour == TERM_PLAIN ? "" : term_colour_on(out, TERM_PLAIN),
            right || last ? 0 : (int)padding, "");
    *at += cell->width + (right ? 0 : padding);
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

static void print_row(FILE *out, const struct table *table, const size_t *widths,
                      const char *margin, const struct table_cell *cells) {
    size_t at = strlen(margin);
    fputs(margin, out);
    for (size_t i = 0; i < table->column_count; i++)
        print_cell(out, table, i, widths, &cells[i], &at);
    putc('\n', out);
}

static void print_titles(FILE *out, const struct table *table, const size_t *widths,
                         const char *margin) {
    struct table_cell titles[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < table->column_count; i++)
        titles[i] = clean_cell(table->columns[i].title, out == stdout ? TERM_BOLD : TERM_PLAIN);
    print_row(out, table, widths, margin, titles);
    for (size_t i = 0; i < table->column_count; i++)
        free(titles[i].text);
}

void table_print(FILE *out, struct table *table, const char *margin) {
    size_t widths[TABLE_COLUMNS_MAX];
    measure(table, widths);
    if (table->columns[0].title)
        print_titles(out, table, widths, margin);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count)
        print_row(out, table, widths, margin, &table->cells[i]);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}
