/*
 * run.c - `gpushare run`: a command with the library preloaded.
 *
 * Whatever would keep the library from doing what was asked is said before the command starts: a
 * broken configuration is an error, a program that cannot be preloaded a warning. Then the command
 * takes this process's place, so signals and exit status are its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "settings.h"
#include "tool.h"

enum { OPTION_CONFIG, OPTION_MODE };

static bool set(const char *variable, const char *value) {
    if (setenv(variable, value, 1) == 0)
        return true;
    tool_error("cannot set %s: %s", variable, strerror(errno));
    return false;
}

static bool set_config(const char *file) {
    char here[PATH_MAX] = "", path[2 * PATH_MAX];
    if (file[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        tool_error("cannot tell the current directory: %s", strerror(errno));
        return false;
    }
    snprintf(path, sizeof(path), "%s%s%s", here, file[0] == '/' ? "" : "/", file);
    return set("GPUSHARE_CONFIG", path);
}

/* What came from our own option is called by its name. */
static void environment_error(void *arg, const char *file, unsigned line, const char *message) {
    const char *mode = arg;
    bool ours = mode != NULL && strcmp(file, "GPUSHARE_MODE") == 0;
    settings_error(NULL, ours ? "--mode" : file, line, message);
}

/* Checks what the command will read: first the file that was named, under the name it was given. */
static bool check_configuration(const char *file, const char *mode) {
    struct gps_config config;
    if (file != NULL) {
        if (gps_config_read_file(&config, file, settings_error, NULL) != 0)
            return false;
        gps_config_free(&config);
    }
    if (gps_config_load(&config, environment_error, (void *)(uintptr_t)mode) != 0)
        return false;
    gps_config_free(&config);
    return true;
}

static bool preload(void) {
    char library[PATH_MAX];
    if (!library_find(library)) {
        tool_error("libgpushare.so not found; looked at: %s; set GPUSHARE_LIBRARY to its path",
                   library);
        return false;
    }
    if (!library_preloadable(library)) {
        tool_error("LD_PRELOAD cannot hold '%s', for it has a blank or a colon; set "
                   "GPUSHARE_LIBRARY to a symbolic link without",
                   library);
        return false;
    }
    char *value = library_preload_value(library, getenv("LD_PRELOAD"));
    bool done = set("LD_PRELOAD", value);
    free(value);
    return done;
}

static void warn_of_obstacles(const char *command) {
    char path[PATH_MAX], why[PATH_MAX + 128];
    if (program_find(command, path) == 0 && program_obstacle(path, why, sizeof(why)))
        tool_warn("'%s' %s; it runs without gpushare", command, why);
}

static int run_run(const struct tool_args *args) {
    const char *config = args->values[OPTION_CONFIG];
    const char *mode = args->values[OPTION_MODE];
    char **command = args->operands;
    if ((config != NULL && !set_config(config)) || (mode != NULL && !set("GPUSHARE_MODE", mode)))
        return TOOL_RUN_FAILED;
    if (!check_configuration(config, mode))
        return TOOL_RUN_FAILED;
    warn_of_obstacles(command[0]);
    if (!preload())
        return TOOL_RUN_FAILED;
    execvp(command[0], command);
    int error = errno;
    if (error == ENOENT && strchr(command[0], '/') == NULL)
        tool_error("command '%s' not found", command[0]);
    else
        tool_error("cannot execute '%s': %s", command[0], strerror(error));
    return error == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_EXECUTE;
}

const struct tool_verb tool_verb_run = {
    .name = "run",
    .operands = "[--] CMD...",
    .summary = "run a command with gpushare preloaded",
    .details =
        "Puts libgpushare.so first into LD_PRELOAD and becomes CMD; its exit status is CMD's own.\n"
        "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not found.\n"
        "The library is GPUSHARE_LIBRARY, or found beside this tool, or where it is installed.\n",
    .options = {{"config", 'c', "FILE", "use this configuration (checked first)"},
                {"mode", 'm', "MODE", "share, audit or off, instead of the configuration's"}},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_run,
};
