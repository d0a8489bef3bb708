#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

FILE *output_open(const char *path) {
    if (path && strcmp(path, "-") == 0)
        path = NULL;
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    FILE *file = !path ? stdout : fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        tool_error("cannot write '%s': %s", path, strerror(errno));
    return file;
}

/* Cuts the file. Output to a pipe or a device cannot be cut, and need not be. */
static bool output_cut(FILE *file, const char *path) {
    struct stat now;
    const off_t end = ftello(file);
    if (fstat(fileno(file), &now) != 0 || !S_ISREG(now.st_mode) || end < 0)
        return true;
    if (end > 0)
        return ftruncate(fileno(file), end) == 0;
    return now.st_size > 0 || unlink(path) == 0;
}

bool output_close(FILE *file, const char *path) {
    if (!file || file == stdout)
        return true;
    errno = EIO; /* of a write before, whose error is not known any more */
    const bool flushed = !ferror(file) && fflush(file) == 0 && output_cut(file, path);
    const int error = errno;
    if (fclose(file) == 0 && flushed)
        return true;
    return tool_error("cannot write '%s': %s", path, strerror(flushed ? errno : error));
}
