#include "launch.h"

#include <ctype.h>

#include "cli/environment.h"
#include "cli/tool.h"
#include "config/config.h"
#include "preload.h"

void launch_set(const char *variable, const char *value) {
    if (setenv(variable, value, 1) != 0)
        tool_no_memory();
}

bool launch_config(const char *file) {
    TOOL_TEMP char *path = tool_absolute(file);
    if (path)
        launch_set("GPUSHARE_CONFIG", path);
    else
        tool_error("cannot tell the current directory: %s", strerror(errno));
    return path;
}

/* An error in the value of --mode names the option. */
static void environment_error(void *arg, const char *file, unsigned line, const char *message) {
    const char *mode = arg;
    bool ours = mode && strcmp(file, "GPUSHARE_MODE") == 0;
    tool_error_in(NULL, ours ? "--mode" : file, line, message);
}

/* Checks what the command will read: first --config's file, so errors have its name as given. */
static bool check_configuration(const char *file, const char *mode) {
    struct gps_config config;
    if (file) {
        if (gps_config_read_file(&config, file, tool_error_in, NULL) != 0)
            return false;
        gps_config_free(&config);
    }
    if (gps_config_load(&config, environment_error, (void *)(uintptr_t)mode) != 0)
        return false;
    if (file && config.options.mode != GPS_MODE_SHARE && config.rule_count > 0)
        tool_warn("mode = %s: no rule of %s is followed",
                  config.options.mode == GPS_MODE_AUDIT ? "audit" : "off", file);
    gps_config_free(&config);
    return true;
}

/* Whether the list has the library already, as with `gpushare run gpushare run`. */
static bool listed(const char *library, const char *list) {
    size_t length = strlen(library);
    for (const char *at = strstr(list, library); at; at = strstr(at + 1, library))
        if ((at == list || strchr(": ", at[-1])) && strchr(": ", at[length]))
            return true;
    return false;
}

static bool preload(enum runtime runtime) {
    char library[PATH_MAX];
    if (!preload_library(runtime, library))
        return tool_error("%s not found; looked at: %s; set GPUSHARE_LIBRARY to its path",
                          vendors[runtime].library, library);
    if (!preload_can_name(library))
        return tool_error("LD_PRELOAD cannot hold '%s', for it has a blank or a colon; set "
                          "GPUSHARE_LIBRARY to a symbolic link without",
                          library);
    const char *existing = tool_or(getenv("LD_PRELOAD"), "");
    TOOL_TEMP char *value = tool_format("%s%s%s", library, *existing ? ":" : "", existing);
    if (!listed(library, existing))
        launch_set("LD_PRELOAD", value);
    return true;
}

/* A damaged program does not run at all, which launch_failed says. */
static void warn_of_obstacles(const char *command) {
    char path[PATH_MAX], why[PATH_MAX + 128];
    if (preload_program(command, path) == 0 && preload_obstacle(path, why, sizeof(why)) &&
        strcmp(why, PRELOAD_DAMAGED) != 0)
        tool_warn("'%s' %s; it runs without gpushare", command, why);
}

static void warn_of_variable(void *arg, const char *message) {
    (void)arg;
    tool_warn("%s", message);
}

bool launch_prepare(const char *config, const char *mode, enum runtime runtime,
                    const char *command) {
    TOOL_TEMP char *wrong = environment_place();
    if (wrong)
        return tool_error("%s", wrong);
    environment_unknown(warn_of_variable, NULL);
    if (mode)
        launch_set("GPUSHARE_MODE", mode);
    if ((config && !launch_config(config)) || !check_configuration(config, mode))
        return false;
    warn_of_obstacles(command);
    return preload(runtime);
}

/* No text begins so: a control character in the first line, as in ELF's magic, or a first byte with
 * which no character of UTF-8 begins. */
static bool is_binary(const char *path) {
    unsigned char head[80];
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const ssize_t size = file >= 0 ? read(file, head, sizeof(head)) : 0;
    if (file >= 0)
        close(file);
    if (size > 0 && ((head[0] >= 0x80 && head[0] < 0xc2) || head[0] > 0xf4))
        return true;
    for (ssize_t i = 0; i < size && head[i] != '\n'; i++)
        if ((head[i] < ' ' && !isspace(head[i]) && head[i] != '\033') || head[i] == 0x7f)
            return true;
    return false;
}

int launch_execute(char **command) {
    char path[PATH_MAX];
    if (preload_program(command[0], path) == 0) {
        execv(path, command);
        if (errno == ENOEXEC && is_binary(path))
            return ENOEXEC;
    }
    execvp(command[0], command); /* gives a text to the shell */
    return errno;
}

int launch_failed(const char *command, int error) {
    if (error == ENOENT && !strchr(command, '/'))
        tool_error("command '%s' not found", command);
    else if (error == ENOEXEC)
        tool_error("cannot execute '%s': the kernel cannot run it, as it is damaged or for another "
                   "machine; allowed: programs for this machine, and scripts",
                   command);
    else
        tool_error("cannot execute '%s': %s", command, strerror(error));
    return error == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_EXECUTE;
}
