/*
 * inifile.c - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * The text is cut up in place: every line, name and value is ended with a NUL where it stands, so
 * nothing is copied and nothing has a limit but the file.
 *
 * A file is read into an anonymous mapping rather than mapped, because a mapped file that shrinks
 * would kill the program with SIGBUS. Cancellation is off throughout: open and read are
 * cancellation points, and the program's thread must not end inside the library.
 */
#include "inifile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/lock.h"

struct reader {
    char *at, *end;
    unsigned line;
    const struct gps_ini_events *events;
};

static const char blanks[] = " \t";

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool is_comment(const char *text) {
    text += strspn(text, blanks);
    return *text == '\0' || *text == ';' || *text == '#';
}

/* Without the blanks at both ends. */
static char *trim(char *text) {
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static void reader_refuse(const struct reader *reader, const char *message) {
    reader->events->error(reader->events->arg, reader->line, message);
}

/* The next line, without its end (\n or \r\n). NULL at the end of the file. */
static char *reader_take_line(struct reader *reader) {
    char *line = reader->at;
    if (line == reader->end)
        return NULL;
    char *newline = memchr(line, '\n', (size_t)(reader->end - line));
    char *end = newline ? newline : reader->end;
    reader->at = newline ? newline + 1 : reader->end;
    reader->line++;
    if (end > line && end[-1] == '\r')
        end--;
    *end = '\0';
    return line;
}

/* Reports a refused header, too, because the keys below it then belong to no known section. */
static void read_section(const struct reader *reader, char *line) {
    const struct gps_ini_events *events = reader->events;
    const char *name = NULL;
    GPS_NEW_TEXT(text, 128);
    char *close = strchr(line, ']');
    if (!close) {
        gps_text_strs(&text, "a section without its ]; write ", events->headers);
        reader_refuse(reader, text.bytes);
    } else if (!is_comment(close + 1)) {
        reader_refuse(reader, "text behind the ] of a section; only a comment may stand there");
    } else {
        *close = '\0';
        name = trim(line + 1);
    }
    events->section(events->arg, reader->line, name);
}

static bool has_control(const char *line) {
    for (; *line != '\0'; line++)
        if (((unsigned char)*line < 0x20 && *line != '\t') || *line == 0x7f)
            return true;
    return false;
}

/* The first of `ends` in the text, or the ; of a comment behind a blank, or the text's end. */
static char *value_find_end(char *text, const char *ends) {
    char *at = text;
    while (*at != '\0' && !strchr(ends, *at) && !(*at == ';' && at > text && is_blank(at[-1])))
        at++;
    return at;
}

/* Why a line is not "key = value"; NULL: it is. `separator` is where the key ends. */
static const char *wrong_with_line(const char *line, const char *separator) {
    if (has_control(line))
        return "a control character; only tabs are allowed";
    if (is_blank(*line))
        return "begins with white space; a key must begin its line, and a value cannot continue "
               "on the next";
    if (*separator != '=' && *separator != ':')
        return "neither a section nor a key; write key = value";
    return separator == line ? "no key before the =; write key = value" : NULL;
}

/* Syntax of other formats, which would otherwise be a part of the value. */
static const char *foreign_syntax(const char *value) {
    if (*value == '"' || *value == '\'')
        return "a value stands without quotes";
    return strstr(value, " #") || strstr(value, "\t#")
               ? "a comment behind a value begins with ; and not with #"
               : NULL;
}

static void read_key(const struct reader *reader, char *line) {
    const struct gps_ini_events *events = reader->events;
    char *separator = value_find_end(line, "=:");
    const char *wrong = wrong_with_line(line, separator);
    if (wrong) {
        reader_refuse(reader, wrong);
        return;
    }
    *separator = '\0';
    char *value = separator + 1;
    *value_find_end(value, "") = '\0';
    value = trim(value);
    wrong = foreign_syntax(value);
    if (wrong)
        reader_refuse(reader, wrong);
    else
        events->key(events->arg, reader->line, trim(line), value);
}

/* A file with a NUL is not a text file (it may be UTF-16): one error, and none for its lines. */
static bool refuse_nul(struct reader *reader) {
    const char *nul = memchr(reader->at, '\0', (size_t)(reader->end - reader->at));
    if (!nul)
        return false;
    reader->line = 1;
    for (const char *at = reader->at; at < nul; at++)
        reader->line += *at == '\n';
    reader_refuse(reader, "a NUL byte; the file must be text in UTF-8");
    return true;
}

void gps_ini_read(char *text, size_t count, const struct gps_ini_events *events) {
    static const char bom[] = {'\xef', '\xbb', '\xbf'};
    struct reader reader = {.at = text, .end = text + count, .line = 0, .events = events};
    if (count == 0 || refuse_nul(&reader))
        return;
    if (count >= sizeof(bom) && memcmp(text, bom, sizeof(bom)) == 0)
        reader.at += sizeof(bom);
    for (char *line = reader_take_line(&reader); line; line = reader_take_line(&reader)) {
        if (is_comment(line))
            continue;
        if (*line == '[')
            read_section(&reader, line);
        else
            read_key(&reader, line);
    }
}

/* --- the bytes of a file --- */

#define ROOM (GPS_INI_FILE + 1) /* one more byte shows that the file is too large */

static int distrust(struct gps_text *wrong, const char *why) {
    gps_text_str(wrong, why);
    return -EPERM;
}

static int inifile_explain(struct gps_text *wrong, int error) {
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

static int inifile_check(int fd, struct gps_text *wrong) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return inifile_explain(wrong, errno);
    if (S_ISDIR(info.st_mode))
        return distrust(wrong, "is a directory; a regular file is needed");
    if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3))
        return 0; /* /dev/null: no configuration, whatever the default files say */
    if (!S_ISREG(info.st_mode))
        return distrust(wrong, "is not a regular file");
    if (info.st_uid == 0 || info.st_uid == geteuid())
        return 0;
    gps_text_add(wrong, "belongs to user %u; it must belong to root or to you, user %u",
                 info.st_uid, geteuid());
    return -EPERM;
}

static int inifile_fill(int fd, char *text, size_t *count, struct gps_text *wrong) {
    for (*count = 0; *count < ROOM;) {
        ssize_t got = read(fd, text + *count, ROOM - *count);
        if (got < 0 && errno != EINTR)
            return inifile_explain(wrong, errno);
        if (got == 0)
            return 0;
        *count += got > 0 ? (size_t)got : 0;
    }
    return distrust(wrong, "is larger than 1 MiB");
}

static int read_checked(int fd, const struct gps_ini_events *events, struct gps_text *wrong) {
    size_t count;
    int status = inifile_check(fd, wrong);
    if (status != 0)
        return status;
    char *text = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED)
        return distrust(wrong, "cannot be read: out of memory");
    status = inifile_fill(fd, text, &count, wrong);
    if (status == 0)
        gps_ini_read(text, count, events);
    munmap(text, ROOM);
    return status;
}

int gps_ini_read_file(const char *path, const struct gps_ini_events *events,
                      struct gps_text *wrong) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int status = fd < 0 ? inifile_explain(wrong, errno) : read_checked(fd, events, wrong);
    if (fd >= 0)
        close(fd);
    else if (is_absent(path, -status))
        status = -ENOENT;
    pthread_setcancelstate(cancel, NULL);
    return status;
}
