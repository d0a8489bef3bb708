/*
 * check.c - `gpushare check`: checks a configuration, and prints its options and rules.
 */
#include <stdio.h>

#include "cli/configuration.h"
#include "cli/tool.h"

static int run_check(const struct tool_args *args) {
    struct gps_config config;
    if (gps_config_read_file(&config, args->operands[0], configuration_error, NULL) != 0)
        return TOOL_FAILED;
    printf("%s: OK: %zu rule%s\n\n", args->operands[0], config.rule_count,
           config.rule_count == 1 ? "" : "s");
    configuration_print(&config);
    gps_config_free(&config);
    return TOOL_OK;
}

const struct tool_verb tool_verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "check a configuration and print what it says",
    .details =
        "Prints the options and rules that hold, defaults included; the environment is left out.\n"
        "Errors go to stderr as FILE:LINE: what is wrong, and what is allowed.\n",
    .operands_min = 1,
    .operands_max = 1,
    .usage_status = TOOL_USAGE,
    .run = run_check,
};
