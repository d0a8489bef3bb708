/* term.c - see term.h. */
#include "term.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool.h"
#include "util/text.h"

#define TERM_WIDTH 80 /* where the stream is no terminal, and at most */

static bool colourful(FILE *stream) {
    const char *no = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && (!no || no[0] == 0) && (!kind || strcmp(kind, "dumb") != 0);
}

const char *term_colour_on(FILE *stream, enum term_colour colour) {
    static const char *const codes[] = {
        [TERM_PLAIN] = "\033[0m",  [TERM_BOLD] = "\033[1m",    [TERM_DIM] = "\033[2m",
        [TERM_GREEN] = "\033[32m", [TERM_YELLOW] = "\033[33m", [TERM_RED] = "\033[31m",
    };
    return colourful(stream) ? codes[colour] : "";
}

const char *term_colour(enum term_colour colour) {
    return term_colour_on(stdout, colour);
}

void term_line(FILE *stream, const char *format, ...) {
    char *line;
    va_list args;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0)
        tool_no_memory();
    va_end(args);
    const size_t size = strlen(line) + 1;
    char *clean = tool_resize(NULL, size, 1);
    struct gps_text out = gps_text_on(clean, size);
    gps_text_plain(&out, line);
    fprintf(stream, "%s\n", clean);
    free(clean);
    free(line);
}

size_t term_width(FILE *stream) {
    struct winsize size;
    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void term_wrap(FILE *stream, const char *text, size_t at) {
    const size_t terminal = term_width(stream);
    const size_t width = terminal > 0 && terminal < TERM_WIDTH ? terminal : TERM_WIDTH;
    size_t column = at;
    while (*text != 0) {
        size_t word = strcspn(text, " ");
        if (column > at && column + 1 + word > width) {
            fprintf(stream, "\n%*s", (int)at, "");
            column = at;
        }
        column += (size_t)fprintf(stream, "%s%.*s", column > at ? " " : "", (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}
