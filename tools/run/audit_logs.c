/*
 * audit_logs.c - the directory into which the processes of an audit write.
 */
#include "audit_logs.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/tool.h"

static bool make_temporary(struct audit_logs *log) {
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    log->temporary = true;
    int length = snprintf(path, sizeof(path), "%s/gpushare-audit-XXXXXX",
                          parent != NULL && parent[0] != 0 ? parent : "/tmp");
    if (length < (int)sizeof(path) && mkdtemp(path) != NULL && realpath(path, log->path) != NULL)
        return true;
    tool_error("cannot make a directory in '%s': %s; set TMPDIR, or use --log=DIR",
               parent != NULL && parent[0] != 0 ? parent : "/tmp", strerror(errno));
    return false;
}

/* What other runs left there would be taken for this one's. */
static bool use(struct audit_logs *log, const char *directory) {
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        tool_error("cannot make '%s': %s", directory, strerror(errno));
        return false;
    }
    if (realpath(directory, log->path) == NULL || access(directory, R_OK | W_OK | X_OK) != 0) {
        tool_error("cannot use '%s': %s", directory, strerror(errno));
        return false;
    }
    if (audit_logs_used(log)) {
        tool_error("'%s' has logs already; give a new or an empty directory", directory);
        return false;
    }
    return true;
}

bool audit_logs_open(struct audit_logs *log, const char *directory) {
    *log = (struct audit_logs){.temporary = false};
    return directory != NULL ? use(log, directory) : make_temporary(log);
}

char *audit_logs_value(const struct audit_logs *log) {
    char *value = tool_resize(NULL, 2 * strlen(log->path) + sizeof("/%c.%p.jsonl"), 1);
    size_t length = 0;
    for (const char *c = log->path; *c != 0; c++) {
        if (*c == '%')
            value[length++] = '%';
        value[length++] = *c;
    }
    strcpy(value + length, "/%c.%p.jsonl");
    return value;
}

static int is_log(const struct dirent *entry) {
    return fnmatch("*.jsonl", entry->d_name, 0) == 0;
}

bool audit_logs_used(const struct audit_logs *log) {
    DIR *directory = opendir(log->path);
    const struct dirent *entry = NULL;
    if (!directory)
        return false;
    while ((entry = readdir(directory)) != NULL && !is_log(entry))
        continue;
    closedir(directory);
    return entry != NULL;
}

void audit_logs_close(const struct audit_logs *log) {
    struct dirent **entries;
    int count = log->temporary ? scandir(log->path, &entries, is_log, NULL) : -1;
    if (count < 0)
        return;
    for (int i = 0; i < count; i++) {
        char *path = tool_format("%s/%s", log->path, entries[i]->d_name);
        unlink(path);
        free(path);
        free(entries[i]);
    }
    free(entries);
    rmdir(log->path);
}
