/*
 * symbol_module.c - opens a module, or a debug file in its place.
 *
 * One Dwfl a module: addresses are those in the file, and so those of two modules overlap.
 */
#include "symbol_module.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/digits.h"

#define DEBUG_ROOT     "/usr/lib/debug" /* of debug files, by build id */
#define BUILD_ID_BYTES 64
#define MODULE_CHARS   127 /* a log has the end of a path that is longer */

static bool report(struct symbol_module *module, const char *path, char **search) {
    static Dwfl_Callbacks callbacks = {.find_debuginfo = dwfl_standard_find_debuginfo,
                                       .section_address = dwfl_offline_section_address};
    callbacks.debuginfo_path = search;
    module->dwfl = dwfl_begin(&callbacks);
    if (!module->dwfl)
        return false;
    dwfl_report_begin(module->dwfl);
    module->module = dwfl_report_elf(module->dwfl, path, path, -1, 0, true);
    dwfl_report_end(module->dwfl, NULL, NULL);
    return module->module;
}

/* Whether the file is the one that ran. Without a build id in the log, it counts as that. */
static bool is_same(const struct symbol_module *module, const char *build_id) {
    if (!build_id)
        return true;
    const unsigned char *bits;
    GElf_Addr address;
    char hex[2 * BUILD_ID_BYTES + 1];
    int count = dwfl_module_build_id(module->module, &bits, &address);
    if (count <= 0 || count > BUILD_ID_BYTES)
        return false;
    gps_hex_format(bits, (size_t)count, hex);
    return strcmp(hex, build_id) == 0;
}

/* A log can name anything: so no FIFO is opened, and a relative path only with a build id, which
 * proves that the file is the one that ran. */
static bool try(struct symbol_module *module, const char *path, const char *build_id,
                char **search) {
    struct stat info;
    if ((path[0] != '/' && !build_id) || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    if (report(module, path, search) && is_same(module, build_id))
        return true;
    symbol_module_close(module);
    return false;
}

static bool try_debug_file(struct symbol_module *module, const char *root, const char *build_id,
                           char **search) {
    char path[4096];
    if (!root || !build_id || strlen(build_id) < 3)
        return false;
    int length =
        snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", root, build_id, build_id + 2);
    return length < (int)sizeof(path) && try(module, path, build_id, search);
}

static const char *why_not(const char *path) {
    if (path[0] != '/')
        return strlen(path) >= MODULE_CHARS ? "its path is too long for the log"
                                            : "not found from here";
    return access(path, F_OK) == 0 ? "replaced since" : "file is gone";
}

void symbol_module_open(struct symbol_module *module, const char *path, const char *build_id,
                        char **search, const char *directory) {
    *module = (struct symbol_module){.note = NULL};
    if (try(module, path, build_id, search) ||
        try_debug_file(module, directory, build_id, search) ||
        try_debug_file(module, DEBUG_ROOT, build_id, search))
        return;
    module->note = why_not(path);
}

void symbol_module_close(struct symbol_module *module) {
    if (module->dwfl)
        dwfl_end(module->dwfl);
    module->dwfl = NULL;
    module->module = NULL;
}
