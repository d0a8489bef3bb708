#include "environment.h"

#include <stdio.h>
#include <unistd.h>

#include "config/key.h"
#include "directory/record.h"
#include "tool.h"
#include "util/nearest.h"
#include "wrap.h"

#define PREFIX "GPUSHARE_"

char *environment_place(void) {
    const char *root = getenv("GPUSHARE_DIR"), *name = getenv("GPUSHARE_NAMESPACE");
    if (root && *root && *root != '/')
        return tool_format("GPUSHARE_DIR='%s' must be an absolute path", root);
    if (!name || !*name || gps_name_valid(name))
        return NULL;
    return tool_format("GPUSHARE_NAMESPACE='%s' is no name; allowed: 1 to 127 of [A-Za-z0-9._-] "
                       "without a leading dot",
                       name);
}

/* "~/.config/gpushare/gpushare.conf" */
static const char *below_home(char path[GPS_CONFIG_PATH]) {
    const char *home = getenv("HOME");
    const size_t length = home ? strlen(home) : 0;
    if (length < 2 || strncmp(path, home, length) != 0 || path[length] != '/')
        return path;
    path[length - 1] = '~';
    return path + length - 1;
}

char *environment_no_config(void) {
    char path[GPS_CONFIG_PATH];
    const bool home = gps_config_home(path);
    return tool_format("no configuration was found: GPUSHARE_CONFIG is not set, and there is no "
                       "%s%s%s",
                       home ? below_home(path) : "", home ? " and no " : "", GPS_CONFIG_SYSTEM);
}

/* Variables that are no options. */
static const struct {
    const char *name; /* without its prefix */
    const char *help; /* NULL: the tool's own, or the tests' */
} others[] = {
    {"DIR", "where what is shared is published, an absolute path; without it gpushare-UID in the "
            "directory that NVIDIA_DRA_LOCAL_IPC_DIR names, or in /dev/shm"},
    {"NAMESPACE", "a set of regions and names of its own in there, 1 to 127 of [A-Za-z0-9._-] "
                  "without a leading dot (default)"},
    {"PROGRAM", "the name of the program, for rules, `ls` and reports"},
    {"CONFIG", "the configuration file"},
    {"LIBRARY", "the library that is preloaded, where it is not beside this tool"},
    {"KEEPER", "the program that is started as `gpushare keeper`, where it is not beside the "
               "library, in ../bin or in ../../bin from there"},
    {"LEARN", NULL},
    {"LEARN_RULES", NULL},
    {"EXPLAIN", NULL},
    {"ASSERTIONS", NULL},
    {"CHANNEL", NULL},
};
#define OTHERS (sizeof(others) / sizeof(others[0]))

void environment_help(void) {
    for (size_t i = 0; i < OTHERS && others[i].help; i++) {
        printf("  " PREFIX "%-9s  ", others[i].name);
        wrap_text(stdout, others[i].help, 22);
    }
}

static bool is_of_tests(const char *name) {
    return strncmp(name, "SIM_", 4) == 0 || strncmp(name, "TEST_", 5) == 0;
}

/* The complaint about an unknown variable; malloc'ed. NULL: the variable is known. */
static char *variable_complaint(const char *name) {
    enum { OPTIONS = 64 };
    static char options[OPTIONS][64];
    struct gps_nearest nearest = {.word = name};
    const struct gps_key *key = gps_keys_of(GPS_SECTION_OPTIONS);
    for (size_t i = 0; i < OPTIONS && key[i].name; i++) {
        struct gps_text variable = GPS_TEXT(options[i]);
        gps_key_variable(&key[i], &variable);
        gps_nearest_try(&nearest, options[i] + strlen(PREFIX));
    }
    for (size_t i = 0; i < OTHERS; i++)
        gps_nearest_try(&nearest, others[i].name);
    if (nearest.found && strcmp(nearest.found, name) == 0)
        return NULL;
    return tool_format(
        PREFIX
        "%s is set, and nothing reads it%s%s; gpushare --help and config/gpushare.conf have all",
        name, nearest.found ? "; perhaps " PREFIX : "", tool_or(nearest.found, ""));
}

void environment_unknown(void (*fn)(void *arg, const char *message), void *arg) {
    for (char **at = environ; *at; at++) {
        const char *name = *at + strlen(PREFIX), *end = strchr(*at, '=');
        if (strncmp(*at, PREFIX, strlen(PREFIX)) != 0 || !end || is_of_tests(name))
            continue;
        TOOL_TEMP char *word = tool_format("%.*s", (int)(end - name), name);
        TOOL_TEMP char *message = variable_complaint(word);
        if (message)
            fn(arg, message);
    }
}
