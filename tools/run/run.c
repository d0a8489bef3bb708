/*
 * run.c - `gpushare run`: runs a command with the library preloaded.
 *
 * The command replaces this process, so signals and exit status are its own. In a container it is a
 * child, with a pid of its own.
 */
#include "cli/tool.h"
#include "command.h"
#include "launch.h"
#include "own_pid.h"
#include "runtime_choice.h"

enum { OPTION_CONFIG, OPTION_MODE, OPTION_RUNTIME };

/* Runs the command as a child, since a process cannot change its pid. */
static int run_as_another(char **command) {
    struct command_left left; /* nobody waits for them */
    const int status = command_run(command, COMMAND_ALONE, NULL, &left);
    return status >= 0 ? status : launch_failed(command[0], -status);
}

static int run_run(const struct tool_args *args) {
    char **command = args->operands;
    enum runtime runtime;
    if (!runtime_choose(args->values[OPTION_RUNTIME], command[0], &runtime) ||
        !launch_prepare(args->values[OPTION_CONFIG], args->values[OPTION_MODE], runtime,
                        command[0]))
        return TOOL_RUN_FAILED;
    if (own_pid_needed())
        return run_as_another(command);
    return launch_failed(command[0], launch_execute(command));
}

const struct tool_verb tool_verb_run = {
    .name = "run",
    .operands = "[--] CMD...",
    .summary = "run a command with gpushare preloaded",
    .details = "Puts libgpushare.so first into LD_PRELOAD and becomes CMD; its exit status is "
               "CMD's own. For a program of HIP it is libgpushare-hip.so: one that is linked with "
               "libamdhip64, or any on a machine that has an AMD GPU alone.\n"
               "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not "
               "found.\n"
               "In a container (a pid namespace) CMD is a child and gets a pid that no other "
               "process has which shares: the driver tells processes apart by their pids.\n"
               "The library is GPUSHARE_LIBRARY, or found beside this tool, or where it is "
               "installed.\n",
    .options = {{"config", 'c', "FILE", "use this configuration (checked first)"},
                {"mode", 'm', "MODE", "share, audit or off, instead of the configuration's"},
                RUNTIME_OPTION},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_run,
};
