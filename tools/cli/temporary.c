#include "temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tool.h"

bool temporary_make(char path[PATH_MAX], const char *remedy) {
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] == 0)
        parent = "/tmp";
    TOOL_TEMP char *template = tool_format("%s/gpushare-XXXXXX", parent);
    const bool made = mkdtemp(template) && realpath(template, path);
    if (!made)
        tool_error("cannot make a directory in '%s': %s; set TMPDIR%s", parent, strerror(errno),
                   remedy);
    return made;
}

void temporary_remove(const char *path) {
    /* The place may be another user's by now: nothing is followed. */
    const int place = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = place < 0 ? NULL : fdopendir(place);
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path);
}
