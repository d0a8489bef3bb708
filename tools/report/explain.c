/* explain.c - `gpushare explain`: tells what a finding means. */
#include "cli/tool.h"
#include "explain_finding.h"

enum { OPTION_LIST };

static int run_explain(const struct tool_args *args) {
    const bool list = args->values[OPTION_LIST];
    if (list != (args->operand_count == 0)) {
        tool_error(list ? "a FINDING does not go with --list"
                        : "a FINDING is missing, or --list; see: gpushare explain --help");
        return TOOL_USAGE;
    }
    if (list) {
        explain_finding_list();
    } else if (explain_finding_knows(args->operands)) {
        explain_findings(args->operands);
    } else {
        tool_error("no such finding; gpushare explain --list has all");
        return TOOL_FAILED;
    }
    return TOOL_OK;
}

const struct tool_verb tool_verb_explain = {
    .name = "explain",
    .operands = "[FINDING...]",
    .summary = "tell in full what a finding means",
    .details = "FINDING is an id, as double-free, or a glob, as 'open-*'.\n",
    .options = {{"list", 'l', NULL, "list all findings, in groups"}},
    .operands_max = 1 << 20,
    .run = run_explain,
};
