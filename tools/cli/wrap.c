/* wrap.c - see wrap.h. */
#include "wrap.h"

#include <string.h>
#include <sys/ioctl.h>

#define COLUMNS 80 /* longer lines are hard to read */
#define INDENT  4
#define NARROW  12 /* with fewer columns left beside a label, a text begins below it */
#define BELOW   8

size_t wrap_columns(FILE *stream) {
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

size_t wrap_width(const char *text, size_t bytes) {
    size_t columns = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\033')
            i += strcspn(text + i, "m");
        else
            columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return columns;
}

/* Where lines begin, and where they end. */
struct frame {
    const char *margin; /* of all lines but the first */
    size_t margin_bytes, indent, width;
};

/* Prints the words of a line of the text. Returns what follows that line. */
static const char *print_words(FILE *stream, const char *text, const struct frame *frame,
                               size_t column) {
    const size_t start = wrap_width(frame->margin, frame->margin_bytes) + frame->indent;
    size_t blanks = 0;
    for (;;) {
        const size_t bytes = strcspn(text, " \n"), word = wrap_width(text, bytes);
        if (column > start && column + blanks + word > frame->width) {
            fprintf(stream, "\n%.*s%*s", (int)frame->margin_bytes, frame->margin,
                    (int)frame->indent, "");
            column = start;
            blanks = 0;
        }
        fprintf(stream, "%*s%.*s", (int)blanks, "", (int)bytes, text);
        column += blanks + word;
        text += bytes;
        if (*text != ' ')
            return text;
        blanks = strspn(text, " ");
        text += blanks;
    }
}

void wrap_text(FILE *stream, const char *text, size_t at) {
    const size_t terminal = wrap_columns(stream);
    const size_t width = terminal > 0 && terminal < COLUMNS ? terminal : COLUMNS;
    if (at + NARROW > width)
        at = (size_t)fprintf(stream, "\n%*s", BELOW, "") - 1;
    const struct frame frame = {"", 0, at, width};
    for (;;) {
        if (*text == ' ')
            text += fprintf(stream, "%.*s", (int)strcspn(text, "\n"), text);
        else
            text = print_words(stream, text, &frame, at);
        fputc('\n', stream);
        if (*text == 0 || *++text == 0)
            return;
        fprintf(stream, "%*s", (int)at, "");
    }
}

void wrap_line(FILE *stream, const char *line) {
    const size_t terminal = wrap_columns(stream), margin = strspn(line, "= ");
    const struct frame frame = {line, margin, INDENT, terminal};
    if (terminal <= 2 * (margin + INDENT)) {
        fprintf(stream, "%s\n", line);
        return;
    }
    while (*(line = print_words(stream, line, &frame, 0)) != 0)
        fputc(*line++, stream);
    fputc('\n', stream);
}
