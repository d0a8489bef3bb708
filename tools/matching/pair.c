/*
 * pair.c - `gpushare pair`: runs two programs beside each other, without rules, and says which of
 * their allocations fit together; with frames once more, with the rules, to count a frame's waits.
 */
#include <signal.h>
#include <sys/wait.h>

#include "cli/json_tree.h"
#include "cli/output.h"
#include "cli/temporary.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "explain.h"
#include "fit.h"
#include "frames/turn.h"
#include "run/command.h"

/* --- how many waits a frame has, as a run of its exporter shows --- */

/* Of all buffers that were exported. */
struct sum {
    json_int_t count, alike, odd, waits;
    bool known; /* of none is their number unknown */
    bool any, differ, threads;
};

static void frame_sum_add(struct sum *sum, json_t *buffer) {
    json_int_t count, alike, odd, waits;
    int threads;
    if (json_unpack(buffer, "{s:I, s:I, s:I, s:I, s:b}", "count", &count, "alike", &alike, "odd",
                    &odd, "waits", &waits, "threads", &threads) != 0 ||
        count == 0)
        return;
    sum->differ |= sum->any && sum->waits != waits;
    sum->known = (sum->known || !sum->any) && alike >= GPS_TURN_ALIKE;
    sum->any = true;
    sum->waits = waits;
    sum->count += count;
    sum->alike += alike;
    sum->odd += odd;
    sum->threads |= threads != 0;
}

static struct sum frame_sum_of(json_t *tree) {
    struct sum sum = {.count = 0};
    json_t *processes = json_object_get(tree, "processes");
    for (size_t i = 0; i < json_array_size(processes); i++) {
        json_t *frames = json_object_get(json_array_get(processes, i), "frames");
        for (size_t j = 0; j < json_array_size(frames); j++)
            frame_sum_add(&sum, json_array_get(frames, j));
    }
    return sum;
}

/* Why no number is right for all; malloc'ed. NULL: one is. */
static char *doubt(const struct sum *sum) {
    if (!sum->any)
        return tool_copy("no frame was seen");
    if (sum->threads)
        return tool_copy("several threads draw a frame");
    if (sum->odd)
        return tool_format("%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                           " frames had another number of waits than those before",
                           sum->odd, sum->count);
    if (!sum->known)
        return tool_format("no %u frames in a row had the same number of waits, of "
                           "%" JSON_INTEGER_FORMAT " that were drawn",
                           GPS_TURN_ALIKE, sum->count);
    if (sum->differ)
        return tool_copy("the frames of one buffer have another number of waits than another's");
    return sum->waits ? NULL : tool_copy("the program does not wait for its frames");
}

/* What stands behind `frames` in the exporter's rule: frame_waits, or why it is not known, as
 * lines; malloc'ed. `path` has what the exporter did (fit.h). */
static char *frame_waits_lines(const char *path) {
    json_auto_t *tree = json_load_file(path, 0, NULL);
    const struct sum sum = frame_sum_of(tree);
    TOOL_TEMP char *why = doubt(&sum);
    if (why) {
        term_say(stderr, 0, "The rules have no frame_waits: %s.", why);
        return tool_format("# frame_waits is not known: %s.\n", why);
    }
    return tool_format("# Measured: the last %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                       " frames had as many waits.\nframe_waits = %" JSON_INTEGER_FORMAT "\n",
                       sum.alike, sum.count, sum.waits);
}

/* --- the run of both --- */

enum { OPTION_OUTPUT, OPTION_FRAMES };

static const int awaited[] = {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT};

/* The place of the "--" between the two commands; 0: there is none. */
static int between(const struct tool_args *args) {
    for (int i = 1; i < args->operand_count - 1; i++)
        if (strcmp(args->operands[i], "--") == 0)
            return i;
    return 0;
}

/* In a process of its own, for each side waits for its own descendants. The program's output goes
 * to stderr, not between the rules. */
static pid_t pair_start_side(char **command, const char *config, const char *path) {
    const pid_t side = fork();
    if (side == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        exit(explain_keep(command, config, path));
    }
    if (side < 0)
        tool_error("fork: %s", strerror(errno));
    return side;
}

static int pair_side_status(pid_t side, int status) {
    if (side < 0)
        return TOOL_RUN_FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A signal that ends this process ends the sides. A terminal sends its signals to them, too. */
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

/* The two commands, and the files of what they did. */
struct pair {
    char **first, **second;
    const char *a, *b;
};

/* With the rules of a file. The exit status of the first that failed, or 0. */
static int run_both(const struct pair *pair, const char *config) {
    const pid_t exporter = pair_start_side(pair->first, config, pair->a);
    const pid_t importer = exporter < 0 ? -1 : pair_start_side(pair->second, config, pair->b);
    int statuses[2] = {TOOL_RUN_FAILED << 8, TOOL_RUN_FAILED << 8};
    wait_for_both((const pid_t[]){exporter, importer}, statuses);
    const int one = pair_side_status(exporter, statuses[0]),
              other = pair_side_status(importer, statuses[1]);
    return one ? one : other;
}

static bool write_rules(const char *path, const struct fit_rules *rules, const char *more) {
    FILE *file = output_open(path);
    if (file)
        fit_print(file, rules, more);
    return file && output_close(file, path);
}

/* Runs both with the rules, and puts frame_waits behind the exporter's own lines, malloc'ed. */
static int pair_measure_waits(const struct pair *pair, const char *directory,
                              const struct fit_rules *rules, char **more) {
    TOOL_TEMP char *config = tool_format("%s/rules", directory);
    if (!write_rules(config, rules, *more))
        return TOOL_RUN_FAILED;
    fputs("Both run once more, with these rules, to count the waits of a frame.\n", stderr);
    unlink(pair->a);
    const int status = run_both(pair, config);
    TOOL_TEMP char *before = *more, *waits = frame_waits_lines(pair->a);
    *more = tool_format("%s%s", before, waits);
    return status;
}

/* Runs both, and writes the rules. */
static int pair_up(const struct pair *pair, const char *directory, FILE *out, const char *path,
                   const char *frames) {
    const struct fit_side exporter = {pair->a, pair->first[0]},
                          importer = {pair->b, pair->second[0]};
    TOOL_TEMP char *more = frames ? tool_format("frames = %s\n", frames) : tool_copy("");
    struct fit_rules rules;
    const int status = run_both(pair, "/dev/null");
    if (status >= TOOL_RUN_FAILED)
        return status;
    if (!fit_find(&rules, &exporter, &importer))
        return status ? status : TOOL_FAILED;
    const int again = frames ? pair_measure_waits(pair, directory, &rules, &more) : 0;
    fit_print(out, &rules, more);
    fit_free(&rules);
    command_tell_next("Next", pair->first, path);
    command_tell_next(" and", pair->second, path);
    return status ? status : again;
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
    TOOL_TEMP char *a = tool_format("%s/exporter", directory);
    TOOL_TEMP char *b = tool_format("%s/importer", directory);
    const struct pair pair = {args->operands, args->operands + middle + 1, a, b};
    const int status = pair_up(&pair, directory, out, path, frames);
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
        "nothing keeps them from seeing half of one. Both programs then run once more, with the "
        "rules: where the frames have one number of waits, frame_waits says it, else a comment why "
        "not.\n"
        "The exit status is that of the program that failed; 0 becomes 1 if nothing fits.\n",
    .options = {{"output", 'o', "FILE", "write the rules into FILE, and not standard output"},
                {"frames", 0, "WHICH", "the first rule says frames = WHICH: latest or each"}},
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_pair,
};
