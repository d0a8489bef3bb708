/*
 * inifile.c - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * next_line is inih's source of lines. It handles comments, blank lines and section headers itself,
 * because inih silently cuts a long section name and does not report an empty section. It returns
 * at the first line that may be "key = value". inih splits that line and calls back before it asks
 * for the next one, so the line that was returned last is the line of the key.
 *
 * A file is read into an anonymous mapping rather than mapped, because a mapped file that shrinks
 * would kill the program with SIGBUS. Cancellation is off throughout: open and read are
 * cancellation points, and the program's thread must not end inside the library.
 */
#include "inifile.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/error_text.h"

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

__attribute__((format(printf, 2, 3))) static void refuse(const struct reader *reader,
                                                         const char *format, ...) {
    char message[160];
    struct gps_text text = GPS_TEXT(message);
    va_list args;
    va_start(args, format);
    gps_text_addv(&text, format, args);
    va_end(args);
    reader->events->error(reader->events->arg, reader->line, message);
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

/* The name in the brackets of a header. False, after a report: the header is not valid. */
static bool take_name(const struct reader *reader, struct span line,
                      char name[GPS_INI_SECTION + 1]) {
    const char *close = memchr(line.at, ']', line.count);
    if (!close) {
        refuse(reader, "a section without its ]; write %s", reader->events->headers);
        return false;
    }
    struct span inside = trim((struct span){line.at + 1, (size_t)(close - line.at) - 1});
    struct span behind = trim((struct span){close + 1, (size_t)(line.at + line.count - close) - 1});
    if (!is_comment(behind)) {
        refuse(reader, "text behind the ] of a section; only a comment may stand there");
        return false;
    }
    if (inside.count > GPS_INI_SECTION) {
        refuse(reader,
               "the section name is %lu characters long; at most %u, which leaves %lu for NAME",
               inside.count, GPS_INI_SECTION, GPS_INI_SECTION - reader->events->header_words);
        return false;
    }
    memcpy(name, inside.at, inside.count);
    name[inside.count] = '\0';
    return true;
}

static void read_section(const struct reader *reader, struct span line) {
    char name[GPS_INI_SECTION + 1];
    bool usable = take_name(reader, line, name);
    reader->events->section(reader->events->arg, reader->line, usable ? name : NULL);
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
        refuse(reader,
               "the line is %lu characters long; at most %u (a comment can have a line of its own)",
               line.count, GPS_INI_LINE);
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
        refuse(reader, "%s", wrong);
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

/* --- the bytes of a file --- */

#define ROOM (GPS_INI_FILE + 1) /* one more, to see that there is more */

static int distrust(struct gps_text *wrong, const char *why) {
    gps_text_str(wrong, why);
    return -EPERM;
}

static int explain(struct gps_text *wrong, int error) {
    /* strerror would take locale locks */
    gps_text_strs(wrong, "cannot be read: ", gps_error_text(error));
    return -error;
}

/* Whether a file that could not be opened counts as missing. That includes a file in a directory
 * that is closed to this user: a service that dropped root's rights still has HOME=/root. */
static bool is_absent(const char *path, int error) {
    if (error == ENOENT || error == ENOTDIR)
        return true;
    struct stat info;
    return error == EACCES && stat(path, &info) != 0;
}

static int check(int fd, struct gps_text *wrong) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return explain(wrong, errno);
    if (S_ISDIR(info.st_mode))
        return distrust(wrong, "is a directory; a regular file is needed");
    if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3))
        return 0; /* /dev/null: no configuration, whatever the default files say */
    if (!S_ISREG(info.st_mode))
        return distrust(wrong, "is not a regular file");
    if (info.st_size > (off_t)GPS_INI_FILE)
        return distrust(wrong, "is larger than 1 MiB");
    if (info.st_uid == 0 || info.st_uid == geteuid())
        return 0;
    gps_text_add(wrong, "belongs to user %u; it must belong to root or to you, user %u",
                 info.st_uid, geteuid());
    return -EPERM;
}

static int fill(int fd, struct gps_ini_bytes *file, struct gps_text *wrong) {
    while (file->count < ROOM) {
        ssize_t got = read(fd, file->bytes + file->count, ROOM - file->count);
        if (got < 0 && errno != EINTR)
            return explain(wrong, errno);
        if (got == 0)
            return 0;
        file->count += got > 0 ? (size_t)got : 0;
    }
    return distrust(wrong, "is larger than 1 MiB");
}

static int read_checked(int fd, struct gps_ini_bytes *file, struct gps_text *wrong) {
    int status = check(fd, wrong);
    if (status != 0)
        return status;
    file->count = 0;
    file->bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file->bytes == MAP_FAILED)
        return distrust(wrong, "cannot be read: out of memory");
    status = fill(fd, file, wrong);
    if (status != 0)
        gps_ini_close(file);
    return status;
}

int gps_ini_open(const char *path, struct gps_ini_bytes *file, struct gps_text *wrong) {
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int status = fd < 0 ? explain(wrong, errno) : read_checked(fd, file, wrong);
    if (fd >= 0)
        close(fd);
    else if (is_absent(path, -status))
        status = -ENOENT;
    pthread_setcancelstate(cancel, NULL);
    return status;
}

void gps_ini_close(struct gps_ini_bytes *file) {
    munmap(file->bytes, ROOM);
    *file = (struct gps_ini_bytes){NULL, 0};
}
