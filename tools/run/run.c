/*
 * run.c - `gpushare run`: runs a command with the library preloaded.
 *
 * The command replaces this process, so signals and exit status are its own.
 */
#include <errno.h>
#include <unistd.h>

#include "cli/tool.h"
#include "launch.h"

enum { OPTION_CONFIG, OPTION_MODE };

static int run_run(const struct tool_args *args) {
    char **command = args->operands;
    if (!launch_prepare(args->values[OPTION_CONFIG], args->values[OPTION_MODE], command[0]))
        return TOOL_RUN_FAILED;
    execvp(command[0], command);
    return launch_failed(command[0], errno);
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
