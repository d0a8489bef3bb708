/*
 * screen_lines.h - the usage as lines of a screen, none wider than it; a mark ends those that were
 * cut.
 */
#pragma once

#include "usage_text.h"

struct screen_line {
    char *text;
    enum term_colour colour;
    bool title;
};

struct screen_lines {
    struct screen_line *lines;
    size_t count;
};

/* Stands for what was cut: an ellipsis, or a tilde where the terminal's characters lack it. */
const char *screen_mark(void);
/* A copy of the text, made harmless (gps_text_plain) and cut; to be freed. */
struct screen_line screen_line(const char *text, int width, enum term_colour colour);

char *screen_lines_totals(const struct usage *usage); /* malloc'ed */
/* Each replaces the lines that were there. */
void screen_lines_body(struct screen_lines *lines, const struct usage *usage, int width);
/* A line, and some findings: on a high screen more. */
void screen_lines_findings(struct screen_lines *lines, const struct usage *usage, int width,
                           int height);
void screen_lines_free(struct screen_lines *lines);
