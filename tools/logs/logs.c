/*
 * logs.c - finds the logs, cuts them into lines, and says what was skipped.
 */
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "log_line.h"

#define COMPLAINTS_MAX 8 /* of one file: a binary has a bad "line" every few bytes */

struct reader {
    struct logs *logs;
    FILE *file;
    const char *name;
    logs_complain_fn *complain;
    unsigned long line, skipped;
    char *bytes;
    size_t length;
    bool whole; /* it ended with a newline */
};

static void skip(struct reader *reader, const char *why) {
    if (reader->skipped++ < COMPLAINTS_MAX)
        reader->complain(reader->name, reader->line, why);
}

/* The next line into `bytes`, as much of it as there is room for. False at the end. */
static bool next_line(struct reader *reader) {
    int c;
    reader->length = 0;
    reader->whole = false;
    while ((c = getc_unlocked(reader->file)) != EOF && c != '\n')
        if (reader->length++ < LOGS_LINE_MAX)
            reader->bytes[reader->length - 1] = (char)c;
    reader->whole = c == '\n';
    reader->line++;
    return reader->whole || reader->length > 0;
}

static bool is_blank(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strchr(" \t\r", bytes[i]) == NULL || bytes[i] == 0)
            return false;
    return true;
}

static void take_line(struct reader *reader) {
    struct logs *logs = reader->logs;
    const char *wrong = NULL;
    if (reader->length > LOGS_LINE_MAX) {
        skip(reader, "longer than 1 MiB, which no line of gpushare's is; skipped");
        return;
    }
    if (is_blank(reader->bytes, reader->length))
        return;
    struct log_line *line = logs_line_parse(reader->bytes, reader->length, &wrong);
    if (!line) {
        skip(reader,
             reader->whole ? wrong : "cut off: its writer was killed, or still writes; skipped");
        return;
    }
    line->order = logs->count;
    logs->lines = tool_grow(logs->lines, logs->count, sizeof(struct log_line *));
    logs->lines[logs->count++] = line;
}

void logs_read(struct logs *logs, FILE *file, const char *name, logs_complain_fn *complain) {
    struct reader reader = {.logs = logs, .file = file, .name = name, .complain = complain};
    reader.bytes = tool_resize(NULL, LOGS_LINE_MAX, 1);
    while (next_line(&reader))
        take_line(&reader);
    free(reader.bytes);
    if (reader.skipped > COMPLAINTS_MAX) {
        char message[64];
        snprintf(message, sizeof(message), "%lu more lines that were skipped",
                 reader.skipped - COMPLAINTS_MAX);
        complain(name, 0, message);
    }
}

/* --- files --- */

static int add_file(struct logs *logs, const char *path, logs_complain_fn *complain) {
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    logs_read(logs, file, path, complain);
    int error = ferror(file) ? -EIO : 0;
    fclose(file);
    return error;
}

static int is_log(const struct dirent *entry) {
    return fnmatch("*.jsonl", entry->d_name, 0) == 0;
}

/* One that cannot be read does not hide the others. */
static int add_directory(struct logs *logs, const char *path, logs_complain_fn *complain) {
    struct dirent **entries;
    int count = scandir(path, &entries, is_log, alphasort);
    if (count < 0)
        return -errno;
    if (count == 0)
        complain(path, 0, "no *.jsonl in this directory");
    for (int i = 0; i < count; i++) {
        size_t size = strlen(path) + strlen(entries[i]->d_name) + 2;
        char *file = tool_resize(NULL, size, 1);
        snprintf(file, size, "%s/%s", path, entries[i]->d_name);
        int error = add_file(logs, file, complain);
        if (error != 0)
            complain(file, 0, strerror(-error));
        free(file);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int logs_add(struct logs *logs, const char *path, logs_complain_fn *complain) {
    struct stat info;
    if (strcmp(path, "-") == 0) {
        logs_read(logs, stdin, "(stdin)", complain);
        return ferror(stdin) ? -EIO : 0;
    }
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
        qsort(logs->lines, logs->count, sizeof(struct log_line *), by_time);
}

void logs_free(struct logs *logs) {
    for (size_t i = 0; i < logs->count; i++)
        logs_line_free(logs->lines[i]);
    free(logs->lines);
    *logs = (struct logs){NULL, 0};
}
