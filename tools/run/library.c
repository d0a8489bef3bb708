/*
 * library.c - the place of libgpushare.so, and its way into LD_PRELOAD.
 */
#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

#define LIBRARY_NAME "libgpushare.so"

#if defined(__x86_64__)
#define LIBRARY_MULTIARCH "/../lib/x86_64-linux-gnu"
#else
#define LIBRARY_MULTIARCH "/../lib/aarch64-linux-gnu"
#endif

static bool try_directory(const char *base, const char *below, char path[PATH_MAX]) {
    char candidate[PATH_MAX];
    int length = snprintf(candidate, sizeof(candidate), "%s%s/%s", base, below, LIBRARY_NAME);
    return length < (int)sizeof(candidate) && realpath(candidate, path) && access(path, R_OK) == 0;
}

static bool own_directory(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

bool library_find(char path[PATH_MAX]) {
    static const char *const below[] = {"", "/../lib", "/../lib64", LIBRARY_MULTIARCH};
    const char *given = getenv("GPUSHARE_LIBRARY");
    if (given && given[0] != 0) {
        char *chosen = tool_absolute(given); /* a link is chosen on purpose, and stays */
        const bool found = chosen && access(chosen, R_OK) == 0;
        snprintf(path, PATH_MAX, "%s%s", found ? "" : "GPUSHARE_LIBRARY=", found ? chosen : given);
        free(chosen);
        return found;
    }
    char own[PATH_MAX] = "";
    bool known = own_directory(own);
    for (size_t i = 0; known && i < sizeof(below) / sizeof(below[0]); i++)
        if (try_directory(own, below[i], path))
            return true;
    if (try_directory(GPS_LIBDIR, "", path))
        return true;
    snprintf(path, PATH_MAX, "%.2000s, the lib directories beside it, " GPS_LIBDIR, own);
    return false;
}

bool library_preloadable(const char *path) {
    return !strpbrk(path, " \t\n:");
}

/* Whether the list has the library already, as with `gpushare run gpushare run`. */
static bool listed(const char *library, const char *list) {
    size_t length = strlen(library);
    for (const char *at = strstr(list, library); at; at = strstr(at + 1, library))
        if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[length]))
            return true;
    return false;
}

char *library_preload_value(const char *library, const char *existing) {
    if (!existing || existing[0] == 0)
        return tool_copy(library);
    if (listed(library, existing))
        return tool_copy(existing);
    return tool_format("%s:%s", library, existing);
}
