#include "loaded.h"

#include "cli/tool.h"
#include "descendants.h"

bool loaded_is_code_of(const char *line, const char *name) {
    const char *access = strchr(line, ' '), *slash = strrchr(line, '/');
    const size_t length = strlen(name);
    return access && strnlen(access, 4) == 4 && access[3] == 'x' && slash &&
           strncmp(slash + 1, name, length) == 0 && strchr(". ", slash[1 + length]);
}

static void loaded_note_line(struct loaded *loaded, const char *line) {
    for (enum runtime runtime = 0; runtime < RUNTIMES; runtime++) {
        loaded->libraries[runtime] |= loaded_is_code_of(line, vendors[runtime].library);
        if (!loaded->drivers[runtime] && loaded_is_code_of(line, vendors[runtime].driver))
            loaded->drivers[runtime] = tool_copy(strchr(line, '/'));
    }
}

bool loaded_read(uint32_t pid, struct loaded *loaded) {
    const int maps = descendants_open(pid, "maps");
    size_t size;
    *loaded = (struct loaded){.drivers = {NULL}};
    if (maps < 0)
        return false;
    TOOL_TEMP char *text = tool_read(maps, &size);
    close(maps);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        loaded_note_line(loaded, line);
    return true;
}

void loaded_free(struct loaded *loaded) {
    for (enum runtime runtime = 0; runtime < RUNTIMES; runtime++)
        free(loaded->drivers[runtime]);
}

enum runtime loaded_runtime(const struct loaded *loaded, enum runtime other) {
    const bool cuda = loaded->drivers[RUNTIME_CUDA], hip = loaded->drivers[RUNTIME_HIP];
    return cuda == hip ? other : hip ? RUNTIME_HIP : RUNTIME_CUDA;
}
