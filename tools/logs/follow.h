/* follow.h - logs that are read on as they grow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct follow {
    char *const *paths; /* of files and directories (all *.jsonl in one), as they were given */
    size_t path_count;
    char *configured; /* a glob of follow_glob's, malloc'ed; NULL: there is none */
    struct follow_file *files;
    size_t file_count;
};

/* Makes a glob of a path that the configuration has: %p and %c may be any text. malloc'ed. */
char *follow_glob(const char *log);

/* Hands out the lines that were written since the last time, those of each file in their order. A
 * line not whole yet waits. False: a given path cannot be read, and stderr says why. */
typedef void follow_line_fn(void *arg, const char *text, size_t length);
bool follow_read(struct follow *follow, follow_line_fn *fn, void *arg);
void follow_end(struct follow *follow);
