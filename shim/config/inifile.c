/*
 * inifile.c - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * next_line is inih's source of lines. It handles comments, blank lines and section headers itself,
 * because inih silently cuts a long section name and does not report an empty section. It returns
 * at the first line that may be "key = value". inih splits that line and calls back before it asks
 * for the next one, so the line that was returned last is the line of the key.
 */
#include "inifile.h"

#include <ini.h>
#include <stdbool.h>
#include <string.h>

#include "util/text.h"

struct reader {
    const char *at, *end;
    unsigned line;
    const struct gps_ini_events *events;
};

/* Part of the file; not terminated. */
struct span {
    const char *at;
    size_t count;
};

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

static struct span trim(struct span span) {
    while (span.count > 0 && is_space(span.at[0])) {
        span.at++;
        span.count--;
    }
    while (span.count > 0 && is_space(span.at[span.count - 1]))
        span.count--;
    return span;
}

static bool is_comment(struct span trimmed) {
    return trimmed.count == 0 || trimmed.at[0] == ';' || trimmed.at[0] == '#';
}

static void refuse(const struct reader *reader, const char *message) {
    reader->events->error(reader->events->arg, reader->line, message);
}

/* "what is N characters long; at most LIMIT" */
static void add_length(struct gps_text *text, const char *what, size_t length, size_t limit) {
    gps_text_strs(text, what, " is ");
    gps_text_dec(text, length);
    gps_text_str(text, " characters long; at most ");
    gps_text_dec(text, limit);
}

static void refuse_line_length(const struct reader *reader, size_t length) {
    char buffer[160];
    struct gps_text text = GPS_TEXT(buffer);
    add_length(&text, "the line", length, GPS_INI_LINE);
    gps_text_str(&text, " (a comment can have a line of its own)");
    refuse(reader, buffer);
}

static void refuse_section_length(const struct reader *reader, size_t length) {
    char buffer[160];
    struct gps_text text = GPS_TEXT(buffer);
    add_length(&text, "the section name", length, GPS_INI_SECTION);
    gps_text_str(&text, ", which leaves ");
    gps_text_dec(&text, GPS_INI_SECTION - reader->events->header_words);
    gps_text_str(&text, " for NAME");
    refuse(reader, buffer);
}

static void refuse_open_section(const struct reader *reader) {
    char buffer[160];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_strs(&text, "a section without its ]; write ", reader->events->headers);
    refuse(reader, buffer);
}

/* Takes the next line, without its end (\n or \r\n). False at the end of the file. */
static bool take_line(struct reader *reader, struct span *line) {
    if (reader->at == reader->end)
        return false;
    line->at = reader->at;
    const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    line->count = (size_t)((newline ? newline : reader->end) - reader->at);
    reader->at = newline ? newline + 1 : reader->end;
    reader->line++;
    if (line->count > 0 && line->at[line->count - 1] == '\r')
        line->count--;
    return true;
}

static bool has_control(struct span line) {
    for (size_t i = 0; i < line.count; i++)
        if (((unsigned char)line.at[i] < 0x20 && line.at[i] != '\t') || line.at[i] == 0x7f)
            return true;
    return false;
}

/* The text in the brackets of a header. False, after a report: the header is not valid. */
static bool take_brackets(const struct reader *reader, struct span line, struct span *inside) {
    const char *close = memchr(line.at, ']', line.count);
    if (!close) {
        refuse_open_section(reader);
        return false;
    }
    *inside = trim((struct span){line.at + 1, (size_t)(close - line.at) - 1});
    struct span behind = trim((struct span){close + 1, (size_t)(line.at + line.count - close) - 1});
    if (!is_comment(behind)) {
        refuse(reader, "text behind the ] of a section; only a comment may stand there");
        return false;
    }
    if (inside->count > GPS_INI_SECTION) {
        refuse_section_length(reader, inside->count);
        return false;
    }
    return true;
}

static void read_section(const struct reader *reader, struct span line) {
    const struct gps_ini_events *events = reader->events;
    struct span inside;
    bool usable = take_brackets(reader, line, &inside);
    char name[GPS_INI_SECTION + 1];
    if (usable) {
        memcpy(name, inside.at, inside.count);
        name[inside.count] = '\0';
    }
    events->section(events->arg, reader->line, usable ? name : NULL);
}

/* Where a key ends: the first = or :, unless a comment begins before it. NULL: there is none. */
static const char *find_separator(struct span line) {
    for (size_t i = 0; i < line.count; i++) {
        if (line.at[i] == '=' || line.at[i] == ':')
            return line.at + i;
        if (i > 0 && line.at[i] == ';' && is_space(line.at[i - 1]))
            return NULL;
    }
    return NULL;
}

/* Whether inih may have this line; reports why not. */
static bool accept_key(const struct reader *reader, struct span line) {
    const char *separator = find_separator(line);
    if (has_control(line)) {
        refuse(reader, "a control character; only tabs are allowed");
    } else if (is_space(line.at[0])) {
        refuse(reader, "begins with white space; a key must begin its line, and a value cannot "
                       "continue on the next");
    } else if (!separator) {
        refuse(reader, "neither a section nor a key; write key = value");
    } else if (separator == line.at) {
        refuse(reader, "no key before the =; write key = value");
    } else if (line.count > GPS_INI_LINE) {
        refuse_line_length(reader, line.count);
    } else {
        return true;
    }
    return false;
}

/* inih's reader callback. */
static char *next_line(char *buffer, int size, void *stream) {
    struct reader *reader = stream;
    struct span line;
    while (take_line(reader, &line)) {
        if (is_comment(trim(line)))
            continue;
        if (line.at[0] == '[') {
            read_section(reader, line);
        } else if (accept_key(reader, line) && line.count < (size_t)size) {
            memcpy(buffer, line.at, line.count);
            buffer[line.count] = '\0';
            return buffer;
        }
    }
    return NULL;
}

/* Syntax of other formats that inih would take for a part of the value. */
static const char *foreign_syntax(const char *value) {
    if (*value == '"' || *value == '\'')
        return "a value stands without quotes";
    for (; *value != '\0'; value++)
        if (is_space(value[0]) && value[1] == '#')
            return "a comment behind a value begins with ; and not with #";
    return NULL;
}

/* inih's handler. */
static int found_key(void *user, const char *section, const char *key, const char *value) {
    const struct reader *reader = user;
    const char *wrong = foreign_syntax(value);
    (void)section;
    if (wrong)
        refuse(reader, wrong);
    else
        reader->events->key(reader->events->arg, reader->line, key, value);
    return 1;
}

/* A file with a NUL is not a text file (it may be UTF-16): one error, and none for its lines. */
static bool refuse_nul(struct reader *reader) {
    const char *nul = memchr(reader->at, '\0', (size_t)(reader->end - reader->at));
    if (!nul)
        return false;
    reader->line = 1;
    for (const char *at = reader->at; at < nul; at++)
        reader->line += *at == '\n';
    refuse(reader, "a NUL byte; the file must be text in UTF-8");
    return true;
}

void gps_ini_read(const char *bytes, size_t count, const struct gps_ini_events *events) {
    static const char bom[] = {'\xef', '\xbb', '\xbf'};
    struct reader reader = {.at = bytes, .end = bytes + count, .line = 0, .events = events};
    if (count == 0 || refuse_nul(&reader))
        return;
    if (count >= sizeof(bom) && memcmp(bytes, bom, sizeof(bom)) == 0)
        reader.at += sizeof(bom);
    (void)ini_parse_stream(next_line, &reader, found_key, &reader);
}
