/*
 * pair.c - `gpushare pair`: runs two programs beside each other, without rules, and says which of
 * their allocations fit together.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/temporary.h"
#include "cli/tool.h"
#include "explain.h"
#include "fit.h"
#include "run/command.h"
#include "run/next.h"

enum { OPTION_OUTPUT, OPTION_FRAMES };

static const int awaited[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT};

/* The place of the "--" between the two commands; 0: there is none. */
static int between(const struct tool_args *args) {
    for (int i = 1; i < args->operand_count - 1; i++)
        if (strcmp(args->operands[i], "--") == 0)
            return i;
    return 0;
}

/* In a process of its own, for each side waits for its own descendants. What the program prints
 * does not come between the rules. */
static pid_t start(char **command, const char *path) {
    const pid_t side = fork();
    if (side == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        exit(explain_keep(command, path));
    }
    if (side < 0)
        tool_error("fork: %s", strerror(errno));
    return side;
}

static int status_of(pid_t side, int status) {
    if (side < 0)
        return TOOL_RUN_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What ends this process ends the sides. A terminal sends its signals to them, too. */
static void wait_for_both(const pid_t sides[2], int statuses[2]) {
    const struct timespec second = {.tv_sec = 1};
    bool ended[2] = {sides[0] < 0, sides[1] < 0};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(awaited) / sizeof(awaited[0]); i++)
        sigaddset(&set, awaited[i]);
    while (!ended[0] || !ended[1]) {
        const int number = sigtimedwait(&set, NULL, &second);
        for (int i = 0; i < 2; i++) {
            ended[i] = ended[i] || waitpid(sides[i], &statuses[i], WNOHANG) != 0;
            if (!ended[i] && (number == SIGTERM || number == SIGHUP))
                kill(sides[i], number);
        }
    }
}

/* The exit status of the first that failed, or 0. */
static int run_both(char **first, const char *a, char **second, const char *b) {
    const pid_t exporter = start(first, a), importer = exporter < 0 ? -1 : start(second, b);
    int statuses[2] = {TOOL_RUN_FAILED << 8, TOOL_RUN_FAILED << 8};
    wait_for_both((const pid_t[]){exporter, importer}, statuses);
    const int one = status_of(exporter, statuses[0]), other = status_of(importer, statuses[1]);
    return one ? one : other;
}

/* Runs both, and writes the rules. */
static int pair(char **first, char **second, const char *directory, FILE *out, const char *path,
                const char *frames) {
    TOOL_TEMP char *a = tool_format("%s/exporter", directory);
    TOOL_TEMP char *b = tool_format("%s/importer", directory);
    const int status = run_both(first, a, second, b);
    const struct fit_side exporter = {a, first[0]}, importer = {b, second[0]};
    if (status >= TOOL_RUN_FAILED)
        return status;
    if (!fit_print(out, &exporter, &importer, frames))
        return status ? status : TOOL_FAILED;
    next_tell("Next", first, path);
    next_tell(" and", second, path);
    return status;
}

static int run_pair(const struct tool_args *args) {
    char directory[PATH_MAX];
    const char *path = args->values[OPTION_OUTPUT];
    const int middle = args->separated ? between(args) : 0;
    if (!middle) {
        tool_error("two commands are needed: gpushare pair -- CMD... -- CMD...");
        return TOOL_RUN_FAILED;
    }
    const char *frames = args->values[OPTION_FRAMES];
    if (frames && strcmp(frames, "latest") != 0 && strcmp(frames, "each") != 0) {
        tool_error("--frames '%s' is no way to share frames; allowed: latest, each", frames);
        return TOOL_RUN_FAILED;
    }
    FILE *out = output_open(path);
    command_hold_signals();
    if (!out || !temporary_make(directory, ""))
        return TOOL_RUN_FAILED;
    args->operands[middle] = NULL;
    const int status =
        pair(args->operands, args->operands + middle + 1, directory, out, path, frames);
    temporary_remove(directory);
    command_release_signals();
    return output_close(out, path) ? status : TOOL_RUN_FAILED;
}

const struct tool_verb tool_verb_pair = {
    .name = "pair",
    .operands = "-- CMD... -- CMD...",
    .summary = "say which allocations of two programs fit together, and write the rules",
    .details =
        "Runs both programs beside each other, as `gpushare run` does, but without rules. When "
        "both have ended, a table on stderr says which allocations may be one region, and "
        "standard output has two rules for those that fit best: the first program exports. What "
        "the programs print on standard output goes to stderr. SIGTERM and SIGHUP are passed on to "
        "both.\n"
        "With --frames importers get whole frames: the newest (latest), or each in order; else "
        "nothing keeps them from seeing half of one.\n"
        "The exit status is that of the program that failed; 0 becomes 1 if nothing fits.\n",
    .options = {{"output", 'o', "FILE", "write the rules into FILE, and not standard output"},
                {"frames", 0, "WHICH", "the first rule says frames = WHICH: latest or each"}},
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_pair,
};
