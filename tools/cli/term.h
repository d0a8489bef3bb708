/*
 * term.h - prints to a terminal: colours, and foreign text made harmless.
 *
 * Colours are for a terminal that is not dumb, and only when NO_COLOR is unset or empty
 * (no-color.org). Names and commands come from other processes: control characters and broken UTF-8
 * in them must not reach a terminal.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

enum term_colour {
    TERM_PLAIN,
    TERM_BOLD,
    TERM_DIM,
    TERM_GREEN,
    TERM_YELLOW,
    TERM_RED,
};

/* The escape sequence that switches to a colour, or back with TERM_PLAIN; "" without colours. */
const char *term_colour(enum term_colour colour);
/* The same for another stream than stdout. */
const char *term_colour_on(FILE *stream, enum term_colour colour);

/* A copy of foreign text in which control characters and broken UTF-8 are '?'; malloc'ed. */
char *term_clean(const char *text);
/* Formats such a text; malloc'ed. */
char *term_format(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
/* Prints a line of foreign text and its newline. The text is cleaned, and wrapped on a terminal. */
void term_line(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a sentence of the tool's own behind so many blanks, and wraps it there (wrap_text). */
void term_say(FILE *stream, size_t indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
