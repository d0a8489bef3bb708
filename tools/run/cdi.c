/*
 * cdi.c - `gpushare cdi`: describes a namespace as a device for containers (Container Device
 * Interface).
 *
 * The device brings library, tool, configuration and directory into a container. It brings an
 * ld.so.preload, too, because a variable LD_PRELOAD would replace the user's own. What it mounts
 * must exist when a container starts, so the directory is made, with the ld.so.preload in it.
 */
#include <ctype.h>
#include <sys/stat.h>

#include "cli/json_tree.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "config/config.h"
#include "directory/view.h"
#include "preload.h"

#define INSIDE_LIBRARY   "/usr/local/lib/libgpushare.so"
#define INSIDE_TOOL      "/usr/local/bin/gpushare"
#define INSIDE_DIRECTORY "/run/gpushare"

enum { OPTION_OUTPUT, OPTION_NAMESPACE };

static void add_mount(json_t *mounts, const char *from, const char *to, const char *access) {
    json_tree_append(mounts, json_tree_pack("{s:o, s:s, s:[s, s, s, s]}", "hostPath",
                                            json_tree_string(from), "containerPath", to, "options",
                                            access, "bind", "nosuid", "nodev"));
}

/* Mounts the configuration in force for this user. Without one, programs read the image's own. */
static bool add_configuration(json_t *mounts) {
    struct gps_config config;
    if (gps_config_load(&config, tool_error_in, NULL) != 0)
        return false;
    TOOL_TEMP char *path = config.source[0] ? tool_absolute(config.source) : NULL;
    if (path)
        add_mount(mounts, path, "/etc/gpushare.conf", "ro");
    gps_config_free(&config);
    return true;
}

static bool write_preload(const char *path) {
    FILE *file = fopen(path, "we");
    const bool written = file && fputs(INSIDE_LIBRARY "\n", file) >= 0 &&
                         fchmod(fileno(file), 0644) == 0; /* for every user of the container */
    if ((file && fclose(file) == 0) && written)
        return true;
    return tool_error("cannot write '%s': %s", path, strerror(errno));
}

/* NULL after an error message. */
static json_t *mounts_of(const struct view_place *place) {
    char library[PATH_MAX], tool[PATH_MAX] = "";
    if (!preload_library(RUNTIME_CUDA, library)) {
        tool_error("libgpushare.so not found; looked at: %s; set GPUSHARE_LIBRARY to its path",
                   library);
        return NULL;
    }
    TOOL_TEMP char *preload = tool_format("%s/ld.so.preload", place->root);
    json_t *mounts = json_tree_pack("[]");
    (void)!readlink("/proc/self/exe", tool, sizeof(tool) - 1);
    add_mount(mounts, library, INSIDE_LIBRARY, "ro");
    add_mount(mounts, tool, INSIDE_TOOL, "ro");
    add_mount(mounts, place->root, INSIDE_DIRECTORY, "rw");
    add_mount(mounts, preload, "/etc/ld.so.preload", "ro");
    if (!add_configuration(mounts) || !write_preload(preload)) {
        json_decref(mounts);
        mounts = NULL;
    }
    return mounts;
}

static int write_device(const char *path, const char *name_space, json_t *mounts) {
    TOOL_TEMP char *variable = tool_format("GPUSHARE_NAMESPACE=%s", name_space);
    json_t *device =
        json_tree_pack("{s:s, s:s, s:[{s:s, s:{s:[s, s], s:o}}]}", "cdiVersion", "0.5.0", "kind",
                       "gpushare.io/namespace", "devices", "name", name_space, "containerEdits",
                       "env", "GPUSHARE_DIR=" INSIDE_DIRECTORY, variable, "mounts", mounts);
    FILE *out = output_open(path);
    if (out)
        json_tree_print(out, device);
    else
        json_decref(device);
    return out && output_close(out, path) ? TOOL_OK : TOOL_FAILED;
}

/* A device's name may have fewer characters than a namespace's. */
static bool is_device_name(const char *name) {
    const size_t length = strlen(name);
    if (gps_name_valid(name) && isalnum((unsigned char)name[0]) &&
        isalnum((unsigned char)name[length - 1]))
        return true;
    return tool_error(
        "the namespace '%s' cannot name a device; allowed: 1 to 127 of [A-Za-z0-9._-] that "
        "begin and end with a letter or digit",
        name);
}

static int run_cdi(const struct tool_args *args) {
    struct view_place place;
    struct gps_store store;
    view_place_get(&place);
    place.name_space = tool_or(args->values[OPTION_NAMESPACE], place.name_space);
    if (!is_device_name(place.name_space))
        return TOOL_FAILED;
    const int status = view_store(&place, true, &store);
    if (status < 0) {
        TOOL_TEMP char *trouble = view_store_trouble(&place, status);
        tool_error("%s/%s: %s", place.root, place.name_space, trouble);
        return TOOL_FAILED;
    }
    json_t *mounts = mounts_of(&place);
    return mounts ? write_device(args->values[OPTION_OUTPUT], place.name_space, mounts)
                  : TOOL_FAILED;
}

const struct tool_verb tool_verb_cdi = {
    .name = "cdi",
    .operands = "",
    .summary = "describe a namespace as a device for containers",
    .details = "Prints a device of the Container Device Interface that brings library, tool, "
               "configuration and directory of the namespace into containers, with an "
               "/etc/ld.so.preload, so that every program in them runs with the library:\n"
               "  gpushare cdi --output /etc/cdi/gpushare.json\n"
               "  podman run --device gpushare.io/namespace=default IMAGE ./app\n"
               "The directory is made, with a file of gpushare's in it. In /dev/shm both are "
               "gone when the machine starts again: run this again then.\n",
    .options = {{"output", 'o', "FILE", "write to FILE, as /etc/cdi/gpushare.json"},
                {"namespace", 'n', "NAME",
                 "another than GPUSHARE_NAMESPACE, or default; it begins and ends with a letter or "
                 "digit"}},
    .run = run_cdi,
};
