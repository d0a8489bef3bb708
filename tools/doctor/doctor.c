/*
 * doctor.c - `gpushare doctor`: looks for what would keep sharing from working here, with remedies.
 *
 * Owns the list of checks and the report; the checks are in doctor_*.c, by subject.
 */
#include "doctor.h"

#include "cli/json_tree.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"
#include "run/launch.h"
#include "run/loaded.h"
#include "run/vendor.h"
#include "selftest/selftest.h"

#define DOCTOR_INDENT 19 /* "FAIL  config       " */

enum {
    OPTION_CONFIG,
    OPTION_JSON,
    OPTION_PID,
    OPTION_RUNTIME,
    OPTION_TIMEOUT,
    OPTION_SELFTEST,
    OPTION_ACTOR
};

static void examine(struct doctor *doctor) {
    static void (*const checks[])(struct doctor *) = {
        doctor_library,       doctor_preload,   doctor_driver,  doctor_platform,
        doctor_container,     doctor_directory, doctor_keeper,  doctor_limits,
        doctor_configuration, doctor_command,   doctor_process,
    };
    view_place_get(&doctor->place);
    doctor->store_status = view_store(&doctor->place, false, &doctor->store);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        checks[i](doctor);
}

static const char *const verdict_names[] = {"ok", "warn", "FAIL"};

static void print_diagnosis(const struct diagnosis *diagnosis) {
    static const enum term_colour colours[] = {TERM_GREEN, TERM_YELLOW, TERM_RED};
    printf("%s%-4s%s  %-11s  ", term_colour(colours[diagnosis->verdict]),
           verdict_names[diagnosis->verdict], term_colour(TERM_PLAIN), diagnosis->check);
    wrap_text(stdout, diagnosis->message, DOCTOR_INDENT);
    if (!diagnosis->remedy)
        return;
    printf("%*s-> ", DOCTOR_INDENT, "");
    wrap_text(stdout, diagnosis->remedy, DOCTOR_INDENT + 3);
}

/* Whether only the command or the process that was asked about cannot share. */
static bool about_one(const struct doctor *doctor) {
    for (size_t i = 0; i < doctor->count; i++)
        if (doctor->list[i].verdict == DOCTOR_FAIL &&
            strcmp(doctor->list[i].check, "command") != 0 &&
            strcmp(doctor->list[i].check, "process") != 0)
            return false;
    return true;
}

static void doctor_print_text(const struct doctor *doctor, const size_t *counts) {
    for (size_t i = 0; i < doctor->count; i++)
        print_diagnosis(&doctor->list[i]);
    if (counts[DOCTOR_FAIL] > 0)
        printf("\n%zu of %zu checks failed: %s until that is mended.\n", counts[DOCTOR_FAIL],
               doctor->count,
               about_one(doctor) ? "what was asked for is not shared"
                                 : "sharing does not work here");
    else if (counts[DOCTOR_WARN] > 0)
        printf("\nSharing works here, with %zu warning%s.\n", counts[DOCTOR_WARN],
               counts[DOCTOR_WARN] == 1 ? "" : "s");
    else
        printf("\nNothing stands in the way of sharing.\n");
}

static void doctor_print_json(const struct doctor *doctor) {
    static const char *const names[] = {"ok", "warn", "fail"};
    json_t *array = json_tree_pack("[]");
    TOOL_EACH(const struct diagnosis, diagnosis, doctor->list, doctor->count) {
        json_tree_append(array, json_tree_pack("{s:s, s:s, s:o, s:o}", "check", diagnosis->check,
                                               "result", names[diagnosis->verdict], "message",
                                               json_tree_string(diagnosis->message), "remedy",
                                               json_tree_string(diagnosis->remedy)));
    }
    json_tree_print(stdout, array);
}

static bool parse_pid(const char *text, uint32_t *pid) {
    char *end;
    const unsigned long number = text ? strtoul(text, &end, 10) : 0;
    if (text && (*text < '0' || *text > '9' || *end || !number || number > INT32_MAX))
        return tool_error("--pid '%s' is no process's number", text);
    *pid = (uint32_t)number;
    return true;
}

/* Whose runtime: what the process has loaded counts, as what the command is linked with does. */
static bool doctor_parse(const struct tool_args *args, struct doctor *doctor) {
    const char *const timeout = args->values[OPTION_TIMEOUT];
    struct loaded loaded;
    if (!gps_parse_duration(timeout ? timeout : "30s", &doctor->timeout) || doctor->timeout == 0)
        return tool_error("--timeout '%s' is no time to wait; allowed: 500ms, 30s, 2min ...",
                          timeout);
    if (!parse_pid(args->values[OPTION_PID], &doctor->pid) ||
        !runtime_choose(args->values[OPTION_RUNTIME], args->operands[0], &doctor->runtime))
        return false;
    if (doctor->pid && !args->values[OPTION_RUNTIME] && loaded_read(doctor->pid, &loaded)) {
        doctor->runtime = loaded_runtime(&loaded, doctor->runtime);
        loaded_free(&loaded);
    }
    return true;
}

/* The self-test has a command and a configuration of its own. */
static int run_selftest(const struct tool_args *args, uint64_t timeout) {
    if (args->operands[0] || args->values[OPTION_CONFIG] || args->values[OPTION_PID] ||
        args->values[OPTION_RUNTIME]) {
        tool_error("--selftest has programs and rules of its own: no CMD, --config, --pid or "
                   "--runtime with it");
        return TOOL_USAGE;
    }
    return selftest_run(args->values[OPTION_JSON], timeout);
}

static int run_doctor(const struct tool_args *args) {
    struct doctor doctor = {.command = args->operands};
    if (args->values[OPTION_ACTOR])
        return selftest_act(args->values[OPTION_ACTOR]);
    if (!doctor_parse(args, &doctor))
        return TOOL_USAGE;
    if (args->values[OPTION_SELFTEST])
        return run_selftest(args, doctor.timeout / 5 * 4); /* the rest is for ending */
    if (args->values[OPTION_CONFIG] && !launch_config(args->values[OPTION_CONFIG]))
        return TOOL_FAILED;
    examine(&doctor);
    size_t counts[3] = {0};
    for (size_t i = 0; i < doctor.count; i++)
        counts[doctor.list[i].verdict]++;
    if (args->values[OPTION_JSON])
        doctor_print_json(&doctor);
    else
        doctor_print_text(&doctor, counts);
    for (size_t i = 0; i < doctor.count; i++) {
        free(doctor.list[i].message);
        free(doctor.list[i].remedy);
    }
    free(doctor.list);
    return counts[DOCTOR_FAIL] > 0 ? TOOL_FAILED : TOOL_OK;
}

const struct tool_verb tool_verb_doctor = {
    .name = "doctor",
    .operands = "[[--] CMD...]",
    .summary = "say what would keep sharing from working here",
    .details = "Looks at the library and whether it loads, the driver and its GPUs, containers "
               "and their namespaces, WSL2, MIG and MPS, the directory in shared memory, limits "
               "and the configuration, and says what to do about what it finds. With CMD, which "
               "is not run, also whether that program can be preloaded; what it starts in turn "
               "is named by `gpushare explain`. Changes nothing. The driver is asked by a "
               "process of its own, so that one that hangs harms nobody. Exit status 1 when a "
               "check fails.\n\n"
               "Looks at HIP where CMD or PID uses it, or where the machine has an AMD GPU "
               "alone: then its version and its GPUs are told, libgpushare-hip.so is looked for, "
               "and rules that HIP has no memory for are named.\n\n"
               "With --selftest, small programs of this tool's own share, hand over, misuse and "
               "merge memory (HIP: do not merge) of the GPU or of a simulated one, in a "
               "namespace of their own that is removed afterwards, also when the self-test is "
               "killed. Each step is ok, failed or not available. The last line is a row for "
               "docs/compatibility.md: date, version, GPU, driver, CUDA or HIP, glibc, container "
               "engine and outcomes. Without a driver it takes the simulated one that `make sim` "
               "builds beside this tool, and says so. Exit status 1 if a step failed, or without a "
               "GPU to test "
               "with.\n",
    .options =
        {{"config", 'c', "FILE", "look at this configuration"},
         {"json", 0, NULL, "an array of objects, for scripts"},
         {"pid", 'p', "PID", "say which runtime this process uses, and with which library"},
         {"runtime", 0, "NAME", "cuda or hip: look at this one"},
         {"timeout", 't', "TIME",
          "how long the driver may take to answer, or the self-test, as 500ms or 2min (30s)"},
         {"selftest", 0, NULL, "try it: half a minute at most"},
         {"actor", 0, "RUNTIME", NULL}},
    .command = true,
    .run = run_doctor,
};
