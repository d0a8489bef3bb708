/* temporary.c - see temporary.h. */
#include "temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

char *temporary_make(const char *remedy) {
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] == 0)
        parent = "/tmp";
    char *template = tool_format("%s/gpushare-XXXXXX", parent);
    char *path = mkdtemp(template) ? realpath(template, NULL) : NULL;
    if (!path)
        tool_error("cannot make a directory in '%s': %s; set TMPDIR%s", parent, strerror(errno),
                   remedy);
    free(template);
    return path;
}
