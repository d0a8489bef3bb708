#include "usage.h"

#include <errno.h>
#include <glob.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "config/config.h"

struct log_tail_file {
    char *path;
    dev_t device;
    ino_t inode;
    off_t offset; /* of the first line that is not read yet */
};

/* --- which --- */

/* Makes a glob of a log's path: %p and %c may be any text. */
static char *glob_of(const char *log) {
    char *pattern = tool_resize(NULL, 2 * strlen(log) + 1, 1), *end = pattern;
    for (; *log != 0; log++) {
        if (log[0] == '%' && (log[1] == 'p' || log[1] == 'c')) {
            *end++ = '*';
            log++;
            continue;
        }
        if (log[0] == '%' && log[1] == '%')
            log++;
        if (strchr("*?[\\", *log))
            *end++ = '\\';
        *end++ = *log;
    }
    *end = 0;
    return pattern;
}

/* The programs report the errors of a configuration. */
void log_tail_begin(struct log_tail *tail, char *const *paths, size_t count) {
    struct gps_config config;
    *tail = (struct log_tail){.paths = paths, .path_count = count};
    if (count > 0 || gps_config_load(&config, NULL, NULL) != 0)
        return;
    if (config.options.log_format == GPS_LOG_JSONL && strcmp(config.options.log, "stderr") != 0)
        tail->configured = glob_of(config.options.log);
    gps_config_free(&config);
}

/* --- findings --- */

/* By id, and by level where reports of one finding have several. */
static int by_id(const void *left, const void *right) {
    const struct log_tail_count *a = left, *b = right;
    return strcmp(a->id, b->id) ?: (int)a->level - (int)b->level;
}

static void count(struct log_tail *tail, const struct log_line *line) {
    struct log_tail_count *counts = tail->counts;
    for (size_t i = 0; i < tail->count_count; i++)
        if (counts[i].level == line->level && strcmp(counts[i].id, line->finding) == 0) {
            counts[i].count += log_tail_times(line);
            return;
        }
    TOOL_APPEND(
        tail->counts, tail->count_count,
        (struct log_tail_count){tool_copy(line->finding), line->level, log_tail_times(line)});
}

/* Logs of several processes are read one after the other, so a finding may belong before others. */
static void keep(struct log_tail *tail, struct log_line *line) {
    size_t at = tail->finding_count;
    TOOL_APPEND(tail->findings, tail->finding_count, line);
    for (; at > 0 && strcmp(tail->findings[at - 1]->ts, line->ts) > 0; at--)
        tail->findings[at] = tail->findings[at - 1];
    tail->findings[at] = line;
    if (tail->finding_count <= LOG_TAIL_KEPT)
        return;
    log_line_free(tail->findings[0]);
    memmove(&tail->findings[0], &tail->findings[1],
            --tail->finding_count * sizeof(*tail->findings));
}

static void add_line(struct log_tail *tail, const char *text, size_t length) {
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (line && line->finding) {
        count(tail, line);
        keep(tail, line);
    } else if (line) {
        log_line_free(line);
    }
}

/* --- files --- */

static struct log_tail_file *file_of(struct log_tail *tail, const char *path) {
    for (size_t i = 0; i < tail->file_count; i++)
        if (strcmp(tail->files[i].path, path) == 0)
            return &tail->files[i];
    TOOL_APPEND(tail->files, tail->file_count, (struct log_tail_file){.path = tool_copy(path)});
    return &tail->files[tail->file_count - 1];
}

/* Reads the lines that are whole. */
static void read_lines(struct log_tail *tail, struct log_tail_file *file, FILE *from) {
    TOOL_TEMP char *text = NULL;
    size_t size = 0;
    ssize_t length;
    while ((length = getline(&text, &size, from)) > 0 && text[length - 1] == '\n') {
        file->offset += length;
        text[--length] = 0;
        if ((size_t)length <= LOGS_LINE_MAX)
            add_line(tail, text, (size_t)length);
    }
}

static int read_file(struct log_tail *tail, const char *path) {
    struct stat info;
    FILE *from = fopen(path, "re");
    if (!from)
        return -errno;
    if (fstat(fileno(from), &info) != 0 || !S_ISREG(info.st_mode)) {
        fclose(from);
        return -EINVAL;
    }
    struct log_tail_file *file = file_of(tail, path);
    if (file->device != info.st_dev || file->inode != info.st_ino || info.st_size < file->offset)
        file->offset = 0;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    if (info.st_size > file->offset && fseeko(from, file->offset, SEEK_SET) == 0)
        read_lines(tail, file, from);
    fclose(from);
    return 0;
}

static int read_directory(struct log_tail *tail, const char *path) {
    size_t count;
    char **logs = logs_list(path, &count);
    if (!logs)
        return -errno;
    for (size_t i = 0; i < count; i++) {
        read_file(tail, logs[i]);
        free(logs[i]);
    }
    free(logs);
    return 0;
}

static void read_glob(struct log_tail *tail, const char *pattern) {
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(tail, found.gl_pathv[i]);
    globfree(&found);
}

bool log_tail_read(struct log_tail *tail) {
    bool good = true;
    if (tail->configured)
        read_glob(tail, tail->configured);
    for (size_t i = 0; i < tail->path_count; i++) {
        const char *path = tail->paths[i];
        struct stat info;
        int status = stat(path, &info) != 0  ? -errno
                     : S_ISDIR(info.st_mode) ? read_directory(tail, path)
                                             : read_file(tail, path);
        if (status != 0) {
            tool_error("cannot read the log '%s': %s", path,
                       status == -EINVAL ? "it is no regular file" : strerror(-status));
            good = false;
        }
    }
    TOOL_SORT(tail->counts, tail->count_count, by_id);
    return good;
}

void log_tail_end(struct log_tail *tail) {
    for (size_t i = 0; i < tail->finding_count; i++)
        log_line_free(tail->findings[i]);
    for (size_t i = 0; i < tail->count_count; i++)
        free(tail->counts[i].id);
    for (size_t i = 0; i < tail->file_count; i++)
        free(tail->files[i].path);
    free(tail->findings);
    free(tail->counts);
    free(tail->files);
    free(tail->configured);
}
