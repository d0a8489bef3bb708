/*
 * gpushare.c - the command-line tool: picks the verb and runs it.
 *
 * Owns the list of verbs (one row each in tool.h), --help and --version. Output that cannot be
 * written is a failure of every verb.
 */

#include "cli/environment.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "util/nearest.h"

static const struct tool_verb *const verbs[] = {
#define VERB_ROW(id) &tool_verb_##id,
    GPS_VERBS(VERB_ROW)
#undef VERB_ROW
};
#define VERB_COUNT  (sizeof(verbs) / sizeof(verbs[0]))
#define USAGE_WIDTH 20

static void print_help(void);
static int run_itself(const struct tool_args *args);

enum { OPTION_VERSION };
static const struct tool_verb itself = {
    .options = {{"version", 'V', NULL, "print the version"}},
    .command = true,
    .help = print_help,
    .run = run_itself,
};

/* NULL after an error message. */
static const struct tool_verb *verb_find(const char *name) {
    TOOL_TEMP char *known = NULL;
    struct gps_nearest nearest = {.word = name};
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
        tool_list(&known, "%s", verbs[i]->name);
        gps_nearest_try(&nearest, verbs[i]->name);
    }
    tool_error("unknown command '%s'%s%s; allowed: %s", name, nearest.found ? ", perhaps " : "",
               tool_or(nearest.found, ""), known);
    return NULL;
}

static void print_help(void) {
    puts("Usage: gpushare COMMAND [OPTIONS] [ARGUMENTS]\n"
         "Lets programs that nobody changes share GPU memory, and tells what they share.\n\n"
         "Commands:");
    for (size_t i = 0; i < VERB_COUNT; i++) {
        char usage[64];
        const int length =
            snprintf(usage, sizeof(usage), "%s %s", verbs[i]->name, verbs[i]->operands);
        if (length > USAGE_WIDTH)
            printf("  %s\n%*s", usage, USAGE_WIDTH + 4, "");
        else
            printf("  %-*s  ", USAGE_WIDTH, usage);
        wrap_text(stdout, verbs[i]->summary, USAGE_WIDTH + 4);
    }
    puts("\nOptions:");
    tool_help_options(&itself);
    puts("\nEnvironment:");
    environment_help();
    puts("\n`gpushare COMMAND --help` explains a command, gpushare(1) everything.\n"
         "Something does not work? `gpushare doctor` says what keeps sharing from working.");
}

static int run_help(const struct tool_args *args) {
    if (args->operand_count == 0) {
        print_help();
        return TOOL_OK;
    }
    const struct tool_verb *verb = verb_find(args->operands[0]);
    if (verb)
        tool_help(verb);
    return verb ? TOOL_OK : TOOL_USAGE;
}

const struct tool_verb tool_verb_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "explain a command",
    .details = "Without COMMAND, lists the commands.\n",
    .operands_max = 1,
    .run = run_help,
};

static int run_itself(const struct tool_args *args) {
    if (args->values[OPTION_VERSION]) {
        puts("gpushare " GPS_VERSION);
        return TOOL_OK;
    }
    if (args->operand_count == 0) {
        tool_error("a command is missing; see: gpushare --help");
        return TOOL_USAGE;
    }
    const struct tool_verb *verb = verb_find(args->operands[0]);
    return verb ? tool_call(verb, args->operand_count, args->operands) : TOOL_USAGE;
}

int main(int argc, char **argv) {
    int status = tool_call(&itself, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tool_error("cannot write the output: %s", strerror(errno));
        return status != TOOL_OK ? status : TOOL_FAILED;
    }
    return status;
}
