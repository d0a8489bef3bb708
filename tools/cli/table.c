#include "table.h"

#include "tool.h"
#include "wrap.h"

#define TABLE_COLUMNS_MAX 16
#define WRAP_MIN          20 /* a last column with less room goes below its row */
#define BELOW             8  /* columns behind the margin, where a row goes on below */

static struct table_cell make_cell(char *text, enum term_colour colour) {
    return (struct table_cell){text, wrap_width(text, strlen(text)), colour};
}

void table_cell(struct table *table, enum term_colour colour, const char *format, ...) {
    char *text = TOOL_VARIADIC(term_format, format);
    TOOL_APPEND(table->cells, table->cell_count, make_cell(text, colour));
}

void table_cells(struct table *table, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        table_cell(table, TERM_PLAIN, "%s", texts[i]);
}

/* Whether the text is like "3: camera 12, viewer 13, viewer 14". */
static bool is_list(const char *text) {
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == ':';
}

/* How much of the text goes into a line of this width: whole words, at least one; of a list whole
 * items, if at least one fits. */
static size_t fitting(const char *text, size_t width, bool list) {
    size_t end = strcspn(text, " "), next = end, item = 0;
    while (text[next] != 0) {
        next = end + 1 + strcspn(text + end + 1, " ");
        if (wrap_width(text, next) > width)
            return item > 0 ? item : end;
        end = next;
        if (list && text[end - 1] == ',')
            item = end;
    }
    return end;
}

/* A row that is being printed. */
struct row {
    FILE *out;
    const struct table *table;
    const size_t *widths;
    const char *margin;
    size_t terminal; /* its columns; 0: it is none */
    size_t at;       /* the column that is reached */
    size_t pending;  /* blanks up to it that are not printed yet */
};

static void row_begin_line(struct row *row, size_t column) {
    fprintf(row->out, "\n%s%*s", row->margin, (int)(column - strlen(row->margin)), "");
    row->at = column;
    row->pending = 0;
}

/* Prints the text in lines that begin in the same column. */
static void print_wrapped(struct row *row, const char *text) {
    const bool list = is_list(text);
    const size_t column = row->at;
    const size_t width = row->terminal > column + WRAP_MIN ? row->terminal - column : SIZE_MAX;
    for (;;) {
        const size_t length = fitting(text, width, list);
        fprintf(row->out, "%.*s", (int)length, text);
        text += length;
        if (*text == 0)
            return;
        row_begin_line(row, column);
        text++;
    }
}

/* Whether the cell fits into the line. Of the last cell a part is enough. */
static bool row_has_room(const struct row *row, size_t from, size_t width, bool last) {
    return row->terminal == 0 || from + width <= row->terminal ||
           (last && from + WRAP_MIN <= row->terminal);
}

static void print_cell(struct row *row, size_t column, const struct table_cell *cell) {
    const struct table_column *columns = row->table->columns;
    const size_t padding = row->widths[column] - cell->width;
    const bool right = columns[column].right, last = column + 1 == row->table->column_count;
    const size_t gap = column == 0 ? 0 : columns[column - 1].right == TABLE_CLOSE ? 1 : 2;
    const size_t before = right ? padding : 0, width = last ? cell->width : row->widths[column];
    const bool coloured = cell->colour != TERM_PLAIN;
    if (last && cell->text[0] == 0)
        return;
    if (column > 0 && !row_has_room(row, row->at + gap, width + (last ? before : 0), last))
        row_begin_line(row, strlen(row->margin) + BELOW - gap);
    row->at += gap + before;
    fprintf(row->out, "%*s%s", (int)(row->pending + gap + before), "",
            coloured ? term_colour_on(row->out, cell->colour) : "");
    if (last)
        print_wrapped(row, cell->text);
    else
        fputs(cell->text, row->out);
    fputs(coloured ? term_colour_on(row->out, TERM_PLAIN) : "", row->out);
    row->pending = right ? 0 : padding;
    row->at += cell->width + row->pending;
}

static void table_measure(const struct table *table, size_t *widths) {
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = strlen(tool_or(table->columns[i].title, ""));
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t *width = &widths[i % table->column_count];
        if (table->cells[i].width > *width)
            *width = table->cells[i].width;
    }
}

static void row_print(struct row *row, const struct table_cell *cells) {
    fputs(row->margin, row->out);
    row->at = strlen(row->margin);
    row->pending = 0;
    for (size_t i = 0; i < row->table->column_count; i++)
        if (row->table->columns[i].right != TABLE_HIDDEN)
            print_cell(row, i, &cells[i]);
    putc('\n', row->out);
}

static void row_print_titles(struct row *row) {
    const struct table *table = row->table;
    struct table_cell titles[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < table->column_count; i++)
        titles[i] = make_cell(tool_copy(tool_or(table->columns[i].title, "")),
                              row->out == stdout ? TERM_BOLD : TERM_PLAIN);
    row_print(row, titles);
    for (size_t i = 0; i < table->column_count; i++)
        free(titles[i].text);
}

void table_print(FILE *out, struct table *table, const char *margin) {
    size_t widths[TABLE_COLUMNS_MAX];
    struct row row = {out, table, widths, margin, wrap_columns(out), 0, 0};
    table_measure(table, widths);
    if (table->columns[0].title)
        row_print_titles(&row);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count)
        row_print(&row, &table->cells[i]);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i].text);
    free(table->cells);
    table->cells = NULL;
    table->cell_count = 0;
}
