/* output.c - see output.h. */
#include "output.h"

#include <errno.h>
#include <string.h>

#include "tool.h"

FILE *output_open(const char *path) {
    FILE *file = path ? fopen(path, "we") : stdout;
    if (!file)
        tool_error("cannot write '%s': %s", path, strerror(errno));
    return file;
}

bool output_close(FILE *file, const char *path) {
    if (!file || file == stdout)
        return true;
    const bool flushed = fflush(file) == 0 && !ferror(file);
    const int error = errno;
    if (fclose(file) == 0 && flushed)
        return true;
    tool_error("cannot write '%s': %s", path, strerror(flushed ? errno : error));
    return false;
}
