/*
 * logs.c - finds the logs, cuts them into lines, and complains of those that it skips.
 */
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "config/config.h"

#define COMPLAINTS_MAX 8 /* of one file: a binary has a bad "line" every few bytes */

struct reader {
    struct logs *logs;
    FILE *file;
    const char *name;
    logs_complain_fn *complain;
    unsigned long line, skipped;
    char *bytes;
    size_t length; /* of the line; LOGS_LINE_MAX bytes of it are there */
    bool whole;    /* the line ends with a newline */
};

static void skip(struct reader *reader, const char *why) {
    if (reader->skipped++ < COMPLAINTS_MAX)
        reader->complain(reader->name, reader->line, why);
}

/* Reads the next line, as much of it as there is room for. False at the end. */
static bool next_line(struct reader *reader) {
    int c;
    reader->length = 0;
    while ((c = getc_unlocked(reader->file)) != EOF && c != '\n')
        if (reader->length++ < LOGS_LINE_MAX)
            reader->bytes[reader->length - 1] = (char)c;
    reader->whole = c == '\n';
    reader->line++;
    return reader->whole || reader->length > 0;
}

static bool is_blank(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strchr(" \t\r", bytes[i]) || bytes[i] == 0)
            return false;
    return true;
}

static void add_line(struct reader *reader) {
    struct logs *logs = reader->logs;
    if (reader->length > LOGS_LINE_MAX) {
        skip(reader, "longer than 1 MiB, which no line of gpushare's is; skipped");
        return;
    }
    if (is_blank(reader->bytes, reader->length))
        return;
    const char *wrong;
    struct log_line *line = log_line_parse(reader->bytes, reader->length, &wrong);
    if (!line) {
        skip(reader,
             reader->whole ? wrong : "cut off: its writer was killed, or still writes; skipped");
        return;
    }
    line->order = logs->count;
    logs->lines = tool_grow(logs->lines, logs->count, sizeof(line));
    logs->lines[logs->count++] = line;
}

void logs_read(struct logs *logs, FILE *file, const char *name, logs_complain_fn *complain) {
    struct reader reader = {.logs = logs, .file = file, .name = name, .complain = complain};
    reader.bytes = tool_resize(NULL, LOGS_LINE_MAX, 1);
    while (next_line(&reader))
        add_line(&reader);
    free(reader.bytes);
    if (reader.skipped <= COMPLAINTS_MAX)
        return;
    char *message =
        tool_format("%lu more lines that were skipped", reader.skipped - COMPLAINTS_MAX);
    complain(name, 0, message);
    free(message);
}

/* --- files --- */

static int add_file(struct logs *logs, const char *path, logs_complain_fn *complain) {
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    logs_read(logs, file, path, complain);
    int status = ferror(file) ? -EIO : 0;
    fclose(file);
    return status;
}

static int is_log(const struct dirent *entry) {
    return gps_glob_match("*.jsonl", entry->d_name);
}

char **logs_list(const char *directory, size_t *count) {
    struct dirent **entries;
    int found = scandir(directory, &entries, is_log, alphasort);
    if (found < 0)
        return NULL;
    char **paths = tool_resize(NULL, (size_t)found + 1, sizeof(*paths));
    *count = (size_t)found;
    for (int i = 0; i < found; i++) {
        paths[i] = tool_format("%s/%s", directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return paths;
}

/* A file that cannot be read does not hide the others. */
static int add_directory(struct logs *logs, const char *path, logs_complain_fn *complain) {
    size_t count;
    char **paths = logs_list(path, &count);
    if (!paths)
        return -errno;
    if (count == 0)
        complain(path, 0, "no *.jsonl in this directory");
    for (size_t i = 0; i < count; i++) {
        int status = add_file(logs, paths[i], complain);
        if (status != 0)
            complain(paths[i], 0, strerror(-status));
        free(paths[i]);
    }
    free(paths);
    return 0;
}

int logs_add(struct logs *logs, const char *path, logs_complain_fn *complain) {
    if (strcmp(path, "-") == 0) {
        logs_read(logs, stdin, "(stdin)", complain);
        return ferror(stdin) ? -EIO : 0;
    }
    struct stat info;
    if (stat(path, &info) != 0)
        return -errno;
    return (S_ISDIR(info.st_mode) ? add_directory : add_file)(logs, path, complain);
}

/* --- all of them --- */

static int by_time(const void *left, const void *right) {
    const struct log_line *a = *(struct log_line *const *)left;
    const struct log_line *b = *(struct log_line *const *)right;
    int order = strcmp(a->ts, b->ts);
    if (order != 0)
        return order;
    return a->order < b->order ? -1 : a->order > b->order;
}

void logs_sort(struct logs *logs) {
    if (logs->count > 0)
        qsort(logs->lines, logs->count, sizeof(*logs->lines), by_time);
}

void logs_free(struct logs *logs) {
    for (size_t i = 0; i < logs->count; i++)
        log_line_free(logs->lines[i]);
    free(logs->lines);
    *logs = (struct logs){NULL, 0};
}
