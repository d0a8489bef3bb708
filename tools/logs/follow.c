#include "follow.h"

#include <glob.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "logs.h"

struct follow_file {
    char *path;
    dev_t device;
    ino_t inode;
    off_t offset; /* of the first line that is not read yet */
};

/* The arguments of a reading. */
struct reading {
    struct follow *follow;
    follow_line_fn *fn;
    void *arg;
};

char *follow_glob(const char *log) {
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

static struct follow_file *file_of(struct follow *follow, const char *path) {
    for (size_t i = 0; i < follow->file_count; i++)
        if (strcmp(follow->files[i].path, path) == 0)
            return &follow->files[i];
    TOOL_APPEND(follow->files, follow->file_count, (struct follow_file){.path = tool_copy(path)});
    return &follow->files[follow->file_count - 1];
}

/* Reads the lines that are whole. */
static void read_lines(const struct reading *reading, struct follow_file *file, FILE *from) {
    TOOL_TEMP char *text = NULL;
    size_t size = 0;
    ssize_t length;
    while ((length = getline(&text, &size, from)) > 0 && text[length - 1] == '\n') {
        file->offset += length;
        text[--length] = 0;
        if ((size_t)length <= LOGS_LINE_MAX)
            reading->fn(reading->arg, text, (size_t)length);
    }
}

static int follow_read_file(const struct reading *reading, const char *path) {
    struct stat info;
    FILE *from = fopen(path, "re");
    if (!from)
        return -errno;
    if (fstat(fileno(from), &info) != 0 || !S_ISREG(info.st_mode)) {
        fclose(from);
        return -EINVAL;
    }
    struct follow_file *file = file_of(reading->follow, path);
    if (file->device != info.st_dev || file->inode != info.st_ino || info.st_size < file->offset)
        file->offset = 0;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    if (info.st_size > file->offset && fseeko(from, file->offset, SEEK_SET) == 0)
        read_lines(reading, file, from);
    fclose(from);
    return 0;
}

static int follow_read_directory(const struct reading *reading, const char *path) {
    size_t count;
    char **logs = logs_list(path, &count);
    if (!logs)
        return -errno;
    for (size_t i = 0; i < count; i++) {
        follow_read_file(reading, logs[i]);
        free(logs[i]);
    }
    free(logs);
    return 0;
}

static void read_glob(const struct reading *reading, const char *pattern) {
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        follow_read_file(reading, found.gl_pathv[i]);
    globfree(&found);
}

bool follow_read(struct follow *follow, follow_line_fn *fn, void *arg) {
    const struct reading reading = {.follow = follow, .fn = fn, .arg = arg};
    bool good = true;
    if (follow->configured)
        read_glob(&reading, follow->configured);
    for (size_t i = 0; i < follow->path_count; i++) {
        const char *path = follow->paths[i];
        struct stat info;
        int status = stat(path, &info) != 0  ? -errno
                     : S_ISDIR(info.st_mode) ? follow_read_directory(&reading, path)
                                             : follow_read_file(&reading, path);
        if (status != 0) {
            tool_error("cannot read the log '%s': %s", path,
                       status == -EINVAL ? "it is no regular file" : strerror(-status));
            good = false;
        }
    }
    return good;
}

void follow_end(struct follow *follow) {
    for (size_t i = 0; i < follow->file_count; i++)
        free(follow->files[i].path);
    free(follow->files);
    free(follow->configured);
}
