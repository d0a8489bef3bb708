/*
 * table.h - rows of text in columns that are as wide as they need to be.
 *
 * Cells are added left to right, row after row, and printed at the end. Each is copied and made
 * harmless (gps_text_plain). The last column is not padded, so lines have no trailing blanks. On a
 * terminal it is wrapped between words.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "term.h"

struct table_column {
    const char *title; /* NULL in all columns: the table has no line of titles */
    /* 1: aligned to the right; TABLE_CLOSE: to the right, and one blank follows, not two;
     * TABLE_HIDDEN: not printed, which the first and the last column cannot be */
    int right;
};

struct table_cell {
    char *text;
    size_t width;
    enum term_colour colour;
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct table_cell *cells;
    size_t cell_count;
};

#define TABLE_CLOSE    2
#define TABLE_HIDDEN   3
#define TABLE(columns) ((struct table){(columns), sizeof(columns) / sizeof((columns)[0]), NULL, 0})

void table_cell(struct table *table, enum term_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds several plain cells. */
void table_cells(struct table *table, const char *const *texts, size_t count);
#define TABLE_CELLS(table, ...)                                                                    \
    table_cells((table), (const char *const[]){__VA_ARGS__},                                       \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* Prints the titles and all rows, each behind the margin, and frees the cells. Titles are bold on
 * stdout alone. */
void table_print(FILE *out, struct table *table, const char *margin);
