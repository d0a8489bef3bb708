/*
 * selftest.c - the steps of a self-test, and their report.
 *
 * A step is a table of what its actors do and must be answered, so a sentence can say what failed.
 */
#include "selftest.h"

#include <signal.h>

#include "cli/json_tree.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "directory/accounting.h"
#include "directory/view.h"
#include "logs/logs.h"
#include "run/launch.h"
#include "run/preload.h"
#include "util/clock.h"

#define MERGED ((uint64_t)8 << 20) /* bytes of each replica */
#define INDENT 26                  /* "not available  hand-over  " */

enum outcome { OUTCOME_OK, OUTCOME_FAILED, OUTCOME_NOT_AVAILABLE };

static const char *const outcomes[] = {"ok", "failed", "not available"};

/* --- the steps --- */

static const char share_rules[] = "[region selftest-shared]\n"
                                  "program = exporter\nsize = 4MiB\nrole = export\n"
                                  "[region selftest-shared]\n"
                                  "program = importer\nrole = import\nwait = 5s\nmissing = fail\n";
static const struct dialogue_line share_lines[] = {
    {"exporter", "allocate 4194304", NULL},
    {"exporter", "fill 17", NULL},
    {"importer", "allocate 4194304", NULL},
    {"importer", "read", "0 17"},
    {"importer", "fill 34", NULL},
    {"exporter", "read", "0 34"},
    {"exporter", "free", NULL},
    {"importer", "read", "0 34"},
    {"importer", "free", NULL},
    {0},
};

static const char hand_over_rules[] =
    "[region selftest-result]\n"
    "program = giver\nsize = 4MiB\nrole = export\nready = free\nhandover = 10s\n"
    "[region selftest-result]\n"
    "program = taker\nrole = import\nwait = 5s\nmissing = fail\n";
static const struct dialogue_line hand_over_lines[] = {
    {"giver", "allocate 4194304", NULL},
    {"giver", "fill 51", NULL},
    {"giver", "free", NULL},
    {"giver", NULL, NULL},
    {"taker", "allocate 4194304", NULL},
    {"taker", "read", "0 51"},
    {"taker", "free", NULL},
    {0},
};

static const struct dialogue_line misuse_lines[] = {
    {"owner", "allocate 4194304", NULL},
    {"owner", "fill 68", NULL},
    {"owner", "export", NULL},
    {"user", "import $", NULL},
    {"user", "read", "0 68"},
    {"owner", "free", NULL},
    {"owner", "free", "1"},
    {"user", "close", NULL},
    {0},
};

static const char merge_rules[] = "[region selftest-weights]\n"
                                  "program = replica-?\nrole = merge\nquiet = 0\n";
static const struct dialogue_line load_lines[] = {
    {"replica-1", "allocate 8388608", NULL},
    {"replica-1", "fill 85", NULL},
    {"replica-2", "allocate 8388608", NULL},
    {"replica-2", "fill 85", NULL},
    {0},
};
static const struct dialogue_line write_lines[] = {
    {"replica-1", "fill 102", NULL}, {"replica-2", "read", "0 85"}, {"replica-1", "read", "0 102"},
    {"replica-1", "free", NULL},     {"replica-2", "free", NULL},   {0},
};

struct test {
    enum runtime runtime;
    uint64_t deadline; /* of the whole; gps_clock_monotonic */
    struct scratch scratch;
    struct dialogue dialogue;
};

static bool speak(struct dialogue *dialogue, const struct dialogue_line *lines) {
    while (lines->actor && dialogue_speak(dialogue, lines))
        lines++;
    return !lines->actor;
}

/* Adds the finding of a line to a list that has each once. */
static const char *note_finding(void *list, const char *text, size_t length) {
    char **findings = list;
    const char *wrong = NULL;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (!line)
        return wrong;
    if (line->finding && !strstr(tool_or(*findings, ""), line->finding))
        tool_list(findings, "%s", line->finding);
    log_line_free(line);
    return NULL;
}

static void ignore(const char *file, unsigned long line, const char *message) {
    (void)file;
    (void)line;
    (void)message;
}

/* The findings that the library has reported in the step, as a list; malloc'ed. NULL: nothing. */
static char *reported(void) {
    char *findings = NULL;
    const struct log_sink sink = {note_finding, &findings, ignore};
    const char *log = getenv("GPUSHARE_LOG");
    if (log && access(log, F_OK) == 0)
        logs_add(log, &sink);
    return findings;
}

static bool was_reported(struct dialogue *dialogue) {
    TOOL_TEMP char *findings = dialogue_end(dialogue) ? reported() : NULL;
    const char *const list = tool_or(findings, "");
    return (strstr(list, "free-while-open") ||
            dialogue_fails(dialogue, "free-while-open was not reported")) &&
           (strstr(list, "double-free") ||
            dialogue_fails(dialogue, "double-free was not reported"));
}

static uint64_t merged_saved(void) {
    struct view view;
    struct accounting accounting;
    uint64_t saved = 0;
    if (!view_read(&view))
        return 0;
    accounting_make(&view, &accounting);
    for (size_t i = 0; i < accounting.gpu_count; i++)
        saved += accounting.gpus[i].merged.saved;
    accounting_free(&accounting);
    view_free(&view);
    return saved;
}

static bool dialogue_await_merged(struct dialogue *dialogue) {
    while (merged_saved() < MERGED) {
        if (gps_clock_monotonic() >= dialogue->deadline)
            return dialogue_fails(dialogue, "nothing was merged in time");
        usleep(20000);
    }
    return speak(dialogue, write_lines);
}

static const struct step {
    const char *name, *key; /* of the row */
    const char *actors[DIALOGUE_ACTORS];
    const char *mode, *rules;
    bool cuda_only;
    const struct dialogue_line *lines;
    bool (*then)(struct dialogue *dialogue); /* behind the lines; NULL: nothing */
    const char *sentence;                    /* when it went well */
} steps[] = {
    {"share",
     "share",
     {"exporter", "importer"},
     "share",
     share_rules,
     false,
     share_lines,
     NULL,
     "two processes wrote into one buffer and read each other's bytes, also after its owner freed "
     "it"},
    {"hand-over",
     "hand_over",
     {"giver", "taker"},
     "share",
     hand_over_rules,
     false,
     hand_over_lines,
     NULL,
     "a process got the result of another one, which had freed it and ended"},
    {"misuse",
     "misuse",
     {"owner", "user"},
     "audit",
     "",
     false,
     misuse_lines,
     was_reported,
     "a free of what another process had open, and a second free, were reported"},
    {"merge",
     "merge",
     {"replica-1", "replica-2"},
     "share",
     merge_rules,
     true,
     load_lines,
     dialogue_await_merged,
     "two processes held equal memory once, and one did not see what the other wrote then"},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct result {
    enum outcome outcome;
    char *sentence;
};

/* --- running them --- */

/* The user's own settings would be tested, too: only the directory and the library stay. */
static void forget_settings(void) {
    static const char *const kept[] = {"GPUSHARE_DIR=", "GPUSHARE_LIBRARY=", "GPUSHARE_SIM_",
                                       "GPUSHARE_KEEPER=", "GPUSHARE_ASSERTIONS="};
    for (char **at = environ; *at;) {
        bool keep = strncmp(*at, "GPUSHARE_", 9) != 0;
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            keep = keep || strncmp(*at, kept[i], strlen(kept[i])) == 0;
        TOOL_TEMP char *name = tool_format("%.*s", (int)strcspn(*at, "="), *at);
        if (keep || unsetenv(name) != 0)
            at++;
    }
}

static bool selftest_prepare_step(struct test *test, const struct step *step) {
    const char *files = test->scratch.files;
    TOOL_TEMP char *config = tool_format("%s/%s.conf", files, step->name);
    TOOL_TEMP char *log = tool_format("%s/%s.jsonl", files, step->name);
    FILE *file = fopen(config, "we");
    if (file)
        fprintf(file, "[gpushare]\nlog_format = jsonl\nlog_level = info\n%s", step->rules);
    if (!file || fclose(file) != 0)
        return dialogue_fails(&test->dialogue, "its rules could not be written into %s", config);
    launch_set("GPUSHARE_LOG", log);
    if (!launch_prepare(config, step->mode, test->runtime, "/proc/self/exe"))
        return dialogue_fails(&test->dialogue, "the library was not found");
    return true;
}

/* The failure, and the findings that the library reported. */
static char *selftest_complaint(const struct dialogue *dialogue) {
    TOOL_TEMP char *findings = reported();
    return tool_format("%s%s%s%s", dialogue->trouble, findings ? " (reported: " : "",
                       tool_or(findings, ""), findings ? ")" : "");
}

/* A step that hangs leaves half of the time to the others. */
static uint64_t deadline_of(const struct test *test, const struct step *step) {
    const uint64_t now = gps_clock_monotonic();
    const bool last = step == &steps[STEPS - 1];
    return last || now >= test->deadline ? test->deadline : now + (test->deadline - now) / 2;
}

static void run_step(struct test *test, const struct step *step, struct result *result) {
    struct dialogue *dialogue = &test->dialogue;
    *dialogue = (struct dialogue){.runtime = test->runtime, .deadline = deadline_of(test, step)};
    if (step->cuda_only && test->runtime == RUNTIME_HIP) {
        result->outcome = OUTCOME_NOT_AVAILABLE;
        result->sentence = tool_copy("nothing is merged in programs of HIP");
        return;
    }
    const bool spoken = selftest_prepare_step(test, step) &&
                        dialogue_begin(dialogue, step->actors) && speak(dialogue, step->lines) &&
                        (!step->then || step->then(dialogue));
    const bool good = dialogue_end(dialogue) && spoken;
    result->outcome = good ? OUTCOME_OK : OUTCOME_FAILED;
    result->sentence = good ? tool_copy(step->sentence) : selftest_complaint(dialogue);
    free(dialogue->trouble);
}

/* Why a probe found none: what dlopen said, or the runtime's code; malloc'ed. */
static char *no_gpu(const struct dialogue *dialogue) {
    char *end;
    const long code = strtol(dialogue->answer, &end, 10);
    return code == -1 && *end        ? tool_copy(end + 1)
           : end != dialogue->answer ? tool_format("it answers %ld", code)
                                     : tool_copy(tool_or(dialogue->trouble, "no answer"));
}

/* Asks one vendor's runtime. NULL: it has a GPU; else why not, malloc'ed. */
static char *probe(struct test *test, struct machine *machine) {
    static const char *const actors[DIALOGUE_ACTORS] = {"probe"};
    struct dialogue dialogue = {.runtime = test->runtime, .deadline = test->deadline};
    int version = 0, name = 0;
    const bool found = dialogue_begin(&dialogue, actors) &&
                       sscanf(dialogue.answer, "0 %d %n", &version, &name) == 1;
    char *why = found ? NULL : no_gpu(&dialogue);
    if (found)
        machine_describe(machine, test->runtime, version, dialogue.answer + name);
    dialogue_end(&dialogue);
    free(dialogue.trouble);
    return why;
}

/* Where the loader finds no driver of CUDA's: the simulated one beside this tool, for all that is
 * started from now on. False: it is not there, or was taken already. */
static bool take_simulator(void) {
    TOOL_TEMP char *missing = preload_no_driver(RUNTIME_CUDA), *simulator = preload_simulator();
    const char *path = tool_or(getenv("LD_LIBRARY_PATH"), "");
    if (!missing || !simulator || strncmp(path, simulator, strlen(simulator)) == 0)
        return false;
    TOOL_TEMP char *paths = tool_format("%s:%s", simulator, path);
    launch_set("LD_LIBRARY_PATH", paths);
    term_line(stderr, "There is no libcuda.so.1: the simulated one in %s is tested.", simulator);
    return true;
}

/* Takes the first vendor that has a GPU. False: there is none, and stderr says so. */
static bool find_gpu(struct test *test, struct machine *machine) {
    launch_set("GPUSHARE_MODE", "off"); /* we may be preloaded ourselves */
    test->runtime = RUNTIME_CUDA;
    TOOL_TEMP char *no_cuda = probe(test, machine);
    if (!no_cuda)
        return true;
    test->runtime = RUNTIME_HIP;
    TOOL_TEMP char *no_hip = probe(test, machine);
    if (no_hip && take_simulator())
        return find_gpu(test, machine);
    if (no_hip)
        tool_error("there is neither a card nor a simulated driver to test with. CUDA: %s. HIP: "
                   "%s. What is wrong is told by: gpushare doctor",
                   no_cuda, no_hip);
    return !no_hip;
}

/* --- the report --- */

static void selftest_print_text(const struct machine *machine, const struct result *results) {
    static const enum term_colour colours[] = {TERM_GREEN, TERM_RED, TERM_YELLOW};
    for (size_t i = 0; i < STEPS; i++) {
        const enum outcome outcome = results[i].outcome;
        printf("%s%-13s%s  %-9s  ", term_colour(colours[outcome]), outcomes[outcome],
               term_colour(TERM_PLAIN), steps[i].name);
        wrap_text(stdout, results[i].sentence, INDENT);
    }
    printf("\nThis machine's row, to send:\n| %s | %s | %s | %s | %s | %s | %s |", machine->date,
           GPS_VERSION, machine->gpu, machine->driver, machine->interface, machine->glibc,
           machine->container);
    for (size_t i = 0; i < STEPS; i++)
        printf(" %s |", outcomes[results[i].outcome]);
    putchar('\n');
}

static void selftest_print_json(const struct machine *machine, const struct result *results) {
    json_t *list = json_tree_pack("[]");
    json_t *row = json_tree_pack("{s:s, s:s, s:o, s:s, s:s, s:s, s:s}", "date", machine->date,
                                 "gpushare", GPS_VERSION, "gpu", json_tree_string(machine->gpu),
                                 "driver", machine->driver, "interface", machine->interface,
                                 "glibc", machine->glibc, "container", machine->container);
    for (size_t i = 0; i < STEPS; i++) {
        const char *outcome = outcomes[results[i].outcome];
        json_tree_append(list,
                         json_tree_pack("{s:s, s:s, s:o}", "step", steps[i].name, "result", outcome,
                                        "message", json_tree_string(results[i].sentence)));
        json_tree_add(row, "{s:s}", steps[i].key, outcome);
    }
    json_tree_print(stdout, json_tree_pack("{s:o, s:o}", "steps", list, "row", row));
}

static int selftest_run_all(struct test *test, bool json) {
    struct machine machine;
    struct result results[STEPS] = {{0}};
    int status = TOOL_OK;
    if (!find_gpu(test, &machine))
        return TOOL_FAILED;
    for (size_t i = 0; i < STEPS; i++) {
        run_step(test, &steps[i], &results[i]);
        if (results[i].outcome == OUTCOME_FAILED)
            status = TOOL_FAILED;
    }
    json ? selftest_print_json(&machine, results) : selftest_print_text(&machine, results);
    for (size_t i = 0; i < STEPS; i++)
        free(results[i].sentence);
    return status;
}

int selftest_run(bool json, uint64_t timeout) {
    struct test test = {.deadline = gps_clock_monotonic() + timeout};
    forget_settings();
    signal(SIGPIPE, SIG_IGN);
    if (!scratch_begin(&test.scratch))
        return TOOL_FAILED;
    const int status = selftest_run_all(&test, json);
    scratch_end(&test.scratch);
    return status;
}

int selftest_act(const char *name) {
    enum runtime runtime;
    return vendor_find(name, &runtime) ? actor_run(runtime) : TOOL_USAGE;
}
