#include "term.h"

#include <unistd.h>

#include "tool.h"
#include "util/text.h"
#include "wrap.h"

static bool is_colourful(FILE *stream) {
    const char *no = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && (!no || no[0] == 0) && (!kind || strcmp(kind, "dumb") != 0);
}

/* A table of 10,000 rows asks 30,000 times. No stream becomes another file while the tool runs. */
static bool colourful(FILE *stream) {
    static struct {
        FILE *stream;
        bool colourful;
    } last;
    if (last.stream != stream) {
        last.colourful = is_colourful(stream);
        last.stream = stream;
    }
    return last.colourful;
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

char *term_clean(const char *text) {
    const size_t size = strlen(text) + 1;
    char *clean = tool_resize(NULL, size, 1);
    struct gps_text out = gps_text_on(clean, size);
    gps_text_plain(&out, text);
    return clean;
}

char *term_format(const char *format, va_list args) {
    TOOL_TEMP char *text = tool_vformat(format, args);
    return term_clean(text);
}

void term_line(FILE *stream, const char *format, ...) {
    TOOL_TEMP char *line = TOOL_VARIADIC(term_format, format);
    wrap_line(stream, line);
}

void term_say(FILE *stream, size_t indent, const char *format, ...) {
    TOOL_TEMP char *sentence = TOOL_VARIADIC(tool_vformat, format);
    fprintf(stream, "%*s", (int)indent, "");
    wrap_text(stream, sentence, indent);
}
