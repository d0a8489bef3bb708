#include "wrap.h"

#include <string.h>
#include <sys/ioctl.h>

#include "util/text.h"

#define COLUMNS 80 /* longer lines are hard to read */
#define INDENT  4
#define NARROW  12 /* with fewer columns left beside a label, a text begins below it */
#define BELOW   8

size_t wrap_columns(FILE *stream) {
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Of the characters that do not take one column: those of East Asia and pictures take two, and what
 * is drawn on the one before takes none. The locale is not asked, for most commands set none. */
static size_t columns_of(uint32_t code) {
    static const struct {
        uint32_t first, last, columns;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x064b, 0x065f, 0},
        {0x0e34, 0x0e3a, 0},   {0x0e47, 0x0e4e, 0},   {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},
        {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},
        {0x3041, 0xa4cf, 2},   {0xa960, 0xa97f, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
        {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xff01, 0xff60, 2},
        {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
        {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

/* The bytes of the next character, or of a sequence that switches colours, and the columns. */
static size_t wrap_next_character(const char *text, size_t *columns) {
    uint32_t code = 0;
    size_t length;
    *columns = 1;
    if (text[0] >= ' ' && text[0] <= '~') /* nearly all of what is printed */
        return 1;
    if (text[0] == '\033') {
        *columns = 0;
        length = strcspn(text, "m");
        return length + (text[length] != 0);
    }
    length = gps_text_character(text, &code);
    *columns = columns_of(code);
    return length > 0 ? length : 1;
}

size_t wrap_width(const char *text, size_t bytes) {
    size_t width = 0, columns;
    for (size_t i = 0; i < bytes; width += columns)
        i += wrap_next_character(text + i, &columns);
    return width;
}

size_t wrap_fit(const char *text, size_t width) {
    size_t bytes = 0, columns, length;
    for (; text[bytes] != 0; bytes += length, width -= columns) {
        length = wrap_next_character(text + bytes, &columns);
        if (columns > width)
            break;
    }
    return bytes;
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
