/*
 * wrap.h - prints text, wrapped between words.
 *
 * It allocates nothing, for messages about missing memory need it.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The columns of the terminal that the stream is; 0: it is no terminal, or does not say. */
size_t wrap_columns(FILE *stream);

/* The columns that bytes of UTF-8 take; sequences that switch colours take none. */
size_t wrap_width(const char *text, size_t bytes);
/* How many bytes of the text, whole characters, fit into so many columns. */
size_t wrap_fit(const char *text, size_t width);

/* Prints a text in 80 columns, or in those of a narrower terminal: the first line starts at column
 * `at`, further ones are indented to it; where few columns are left there, the text begins below. A
 * line of the text that begins with a blank stays as it is. Ends with a newline. */
void wrap_text(FILE *stream, const char *text, size_t at);

/* Prints a line and its newline, on a terminal wrapped to its width. Further lines have the margin
 * of the first, which is '=' and blanks, and are indented. */
void wrap_line(FILE *stream, const char *line);
