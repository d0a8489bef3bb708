/*
 * run.c - `gpushare run`: runs a command with the library preloaded.
 *
 * The command replaces this process, so signals and exit status are its own. In a container it is a
 * child, with a pid of its own.
 */

#include "cli/environment.h"
#include "cli/tool.h"
#include "command.h"
#include "config/config.h"
#include "launch.h"
#include "preload.h"
#include "vendor.h"

enum { OPTION_CONFIG, OPTION_MODE, OPTION_RUNTIME };

/* Runs the command as a child, since a process cannot change its pid. */
static int run_as_another(char **command) {
    struct command_left left; /* nobody waits for them */
    const int status = command_run(command, COMMAND_ALONE, NULL, &left);
    return status >= 0 ? status : launch_failed(command[0], -status);
}

/* GPUSHARE_CONFIG is easily forgotten in the second terminal. */
static void warn_of_no_config(void) {
    struct gps_config config;
    if (gps_config_load(&config, NULL, NULL) != 0)
        return;
    const bool none = config.source[0] == 0 && config.options.mode == GPS_MODE_SHARE;
    gps_config_free(&config);
    TOOL_TEMP char *text = environment_no_config();
    if (none)
        tool_warn("%s; no rule takes an allocation", text);
}

/* Whether it is linked with CUDA, or its file has the name that a static runtime looks for. */
static bool names_driver(const char *command) {
    static const char name[] = "libcuda";
    char path[PATH_MAX];
    size_t size = 0;
    Elf *elf = preload_program(command, path) == 0 ? preload_elf(path) : NULL;
    const char *bytes = elf_kind(elf) == ELF_K_ELF ? elf_rawfile(elf, &size) : NULL;
    const bool found = bytes && memmem(bytes, size, name, sizeof(name) - 1);
    elf_end(elf);
    return found;
}

/* Without the driver a program of CUDA fails with nothing but its own words. */
static void warn_of_no_driver(enum runtime runtime, const char *command) {
    TOOL_TEMP char *text = preload_no_driver(runtime);
    if (text && (isatty(STDERR_FILENO) || names_driver(command)))
        tool_warn("%s (see: gpushare doctor)", text);
}

static int run_run(const struct tool_args *args) {
    char **command = args->operands;
    enum runtime runtime;
    if (!runtime_choose(args->values[OPTION_RUNTIME], command[0], &runtime) ||
        !launch_prepare(args->values[OPTION_CONFIG], args->values[OPTION_MODE], runtime,
                        command[0]))
        return TOOL_RUN_FAILED;
    warn_of_no_driver(runtime, command[0]);
    if (isatty(STDERR_FILENO))
        warn_of_no_config();
    if (own_pid_needed())
        return run_as_another(command);
    return launch_failed(command[0], launch_execute(command));
}

const struct tool_verb tool_verb_run = {
    .name = "run",
    .operands = "[--] CMD...",
    .summary = "run a command with gpushare preloaded",
    .details = "Puts libgpushare.so first into LD_PRELOAD and becomes CMD: signals and exit "
               "status are CMD's own. The configuration that CMD will read is checked first; "
               "with an error in it CMD is not started.\n"
               "For a program of HIP it is libgpushare-hip.so: one that is linked with "
               "libamdhip64, or with neither runtime on a machine that has AMD GPUs alone. It "
               "was run on a simulated runtime, not on an AMD card.\n"
               "The library is GPUSHARE_LIBRARY, or found beside this tool, in ../lib, ../lib64 "
               "or the multiarch directory in ../lib from there, or where it was installed.\n\n"
               "In a container (a pid namespace) CMD is a child. With --cap-add CHECKPOINT_RESTORE "
               "it gets a pid that no other process has which shares: the driver tells processes "
               "apart by their pids, and takes the events of another container's process 1 for "
               "those of its own. Signals "
               "are passed on to CMD; the exit status is its own, or 128 and the number of the "
               "signal that ended it.\n\n"
               "A program into which nothing is preloaded, because it is statically linked, "
               "setuid or for another machine, is started with a warning. So is a program of CUDA "
               "where there is no driver, and on a terminal one without a configuration.\n\n"
               "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not "
               "found.\n",
    .options = {{"config", 'c', "FILE",
                 "use this configuration, checked first: sets GPUSHARE_CONFIG"},
                {"mode", 'm', "MODE",
                 "share, audit or off, instead of the configuration's: sets GPUSHARE_MODE"},
                RUNTIME_OPTION},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_run,
};
