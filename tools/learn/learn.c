/*
 * learn.c - `gpushare learn`: runs a command, and writes the rules by which others share with it.
 *
 * Each replica is run by a child of ours (descendants.h), and reports into a file of its own. This
 * process reads the files as they grow, shows how far it is, and ends the learning after --for.
 *
 * Where nothing else is said, two are run. If one of them fails, or finds too little memory, the
 * other alone is judged; if both find too little, one is run again, alone.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "canary_report.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/tool.h"
#include "config/config.h"
#include "directory/accounting.h"
#include "profiles.h"
#include "run/audit_logs.h"
#include "run/command.h"
#include "run/launch.h"
#include "run/preload.h"
#include "run/vendor.h"
#include "util/clock.h"

enum { OPTION_FOR, OPTION_REPLICAS, OPTION_CONTENT, OPTION_OUTPUT, OPTION_CHECK };

struct learn {
    char **command;
    const char *rules;        /* to be checked (--check), or NULL */
    uint64_t begun, limit;    /* ns; limit: 0: until the command ends */
    unsigned replicas, first; /* how many count, and from which on */
    bool any, over;           /* over: the time is up */
    bool trying;              /* two run because nothing else was said */
    bool ending;              /* of those, both lack memory */
    const char *supposed;     /* why one counts, though two were to; else NULL */
    unsigned failed;          /* a bit for each replica that failed before the time was up */
    int statuses[PROFILES_REPLICAS];
    FILE *output;
    struct audit_logs directory;
    char *reports[PROFILES_REPLICAS];  /* in it */
    pid_t children[PROFILES_REPLICAS]; /* 0: it has ended */
    struct profiles profiles;
};

/* --- before --- */

/* Has the processes look at what the rules of a file would take. False: stderr says why not. */
static bool prepare_check(const char *file) {
    struct gps_config config;
    char path[PATH_MAX];
    bool any = false;
    if (gps_config_read_file(&config, file, tool_error_in, NULL) != 0)
        return false;
    for (size_t i = 0; i < config.rule_count; i++)
        any = any || config.rules[i].role == GPS_ROLE_MERGE;
    gps_config_free(&config);
    if (!any)
        tool_error("%s has no rule with role = merge: there is nothing to check", file);
    if (any && realpath(file, path))
        launch_set("GPUSHARE_LEARN_RULES", path);
    return any;
}

static bool learn_parse(struct learn *learn, const char *const *values) {
    const char *replicas = tool_or(values[OPTION_REPLICAS], learn->rules ? "1" : "2");
    const char *content = tool_or(values[OPTION_CONTENT], "uploaded");
    char *end;
    const unsigned long count = strtoul(replicas, &end, 10);
    learn->replicas = (unsigned)count;
    learn->trying = !values[OPTION_REPLICAS] && !learn->rules;
    learn->any = strcmp(content, "any") == 0;
    if (values[OPTION_FOR] &&
        (!gps_parse_duration(values[OPTION_FOR], &learn->limit) || !learn->limit))
        tool_error("--for '%s' is no time to learn in; allowed: 30s, 2min, 1h", values[OPTION_FOR]);
    else if (*end || count < 1 || count > PROFILES_REPLICAS)
        tool_error("--replicas '%s' is not 1 to %d", replicas, PROFILES_REPLICAS);
    else if (!learn->any && strcmp(content, "uploaded") != 0)
        tool_error("--content '%s' is unknown; allowed: uploaded, any", content);
    else if (learn->rules && (values[OPTION_CONTENT] || values[OPTION_OUTPUT]))
        tool_error("--check writes no rules; allowed with it: --for, --replicas");
    else
        return !learn->rules || prepare_check(learn->rules);
    return false;
}

/* --- during --- */

/* Runs in the child. */
static int run_replica(const struct learn *learn, unsigned number) {
    struct command_left left;
    launch_set("GPUSHARE_LEARN", learn->reports[number]);
    const int status = command_run(learn->command, COMMAND_AND_DESCENDANTS, NULL, &left);
    if (left.count > 0)
        tool_warn("%zu still running: %s; what they do from now on is not learned", left.count,
                  left.names);
    free(left.names);
    if (status >= 0 || number == 0)
        return status >= 0 ? status : launch_failed(learn->command[0], -status);
    return -status == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_EXECUTE; /* the first one says it */
}

static void signal_all(const struct learn *learn, int number) {
    for (unsigned i = 0; i < learn->replicas; i++)
        if (learn->children[i])
            kill(learn->children[i], number);
}

static bool learn_reap(struct learn *learn) {
    bool any = false;
    for (unsigned i = 0; i < learn->replicas; i++) {
        int status;
        if (learn->children[i] && waitpid(learn->children[i], &status, WNOHANG) > 0) {
            learn->children[i] = 0;
            learn->statuses[i] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            learn->failed |= learn->statuses[i] && !learn->over ? 1u << i : 0;
        }
        any = any || learn->children[i];
    }
    return any;
}

static void read_reports(struct learn *learn) {
    profiles_free(&learn->profiles);
    for (unsigned i = 0; i < learn->replicas; i++) {
        FILE *file = fopen(learn->reports[learn->first + i], "re");
        if (!file)
            continue;
        profiles_read(&learn->profiles, file, i);
        fclose(file);
    }
    profiles_judge(&learn->profiles, learn->replicas, learn->any);
}

/* Bits of both. */
enum { ONE = 1, BOTH = 3 };

static void tell_progress(const struct learn *learn, uint64_t nanos) {
    const struct printable time = printable_duration(nanos);
    if (learn->rules)
        fprintf(stderr, "\r\033[Kchecking for %s: %zu of what the rules take written", time.text,
                canary_sum(&learn->profiles).written);
    else
        fprintf(stderr, "\r\033[Klearning for %s: %zu allocations, %s would be shared", time.text,
                learn->profiles.count, printable_size(profiles_saved(&learn->profiles)).text);
}

/* Once a second. */
static void learn_look(struct learn *learn) {
    const uint64_t seconds = (gps_clock_monotonic() - learn->begun) / GPS_SECOND;
    const bool shown = isatty(STDERR_FILENO);
    if (shown || learn->trying)
        read_reports(learn);
    if (shown)
        tell_progress(learn, seconds * GPS_SECOND);
    if (learn->trying && !learn->ending && learn->profiles.lacking == BOTH) {
        learn->ending = true;
        signal_all(learn, SIGTERM);
    }
}

/* Waits until all replicas have ended. SIGCHLD wakes it, too. */
static void learn_await(struct learn *learn, const sigset_t *signals) {
    const struct timespec second = {.tv_sec = 1};
    while (learn_reap(learn)) {
        const int number = sigtimedwait(signals, NULL, &second);
        if (number == SIGTERM || number == SIGHUP)
            signal_all(learn, number);
        if (learn->limit && !learn->over && gps_clock_monotonic() - learn->begun >= learn->limit) {
            learn->over = true;
            signal_all(learn, SIGTERM);
        }
        learn_look(learn);
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* Forks a child for each replica. */
static void learn_run_all(struct learn *learn) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL};
    struct sigaction interrupt, pipe;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaction(SIGCHLD, &normal, NULL);
    sigaction(SIGINT, &ignore, &interrupt); /* a terminal sends it to the command as well */
    sigaction(SIGPIPE, &ignore, &pipe); /* the directory must be removed also where nobody reads */
    learn->begun = gps_clock_monotonic();
    for (unsigned i = 0; i < learn->replicas; i++) {
        if (!learn->reports[i])
            learn->reports[i] = tool_format("%s/%u.jsonl", learn->directory.path, i);
        learn->children[i] = fork();
        if (learn->children[i] < 0) {
            tool_error("cannot start '%s': %s", learn->command[0], strerror(errno));
            learn->children[i] = 0;
            learn->statuses[i] = TOOL_RUN_FAILED;
            learn->failed |= 1u << i;
        } else if (learn->children[i] == 0) {
            sigaction(SIGINT, &interrupt, NULL);
            sigaction(SIGPIPE, &pipe, NULL);
            _exit(run_replica(learn, i));
        }
    }
    learn_await(learn, &signals);
}

/* Both lacked memory. */
static void run_one_again(struct learn *learn) {
    tool_warn("the GPU has no room for two at once: one is run again, alone");
    for (unsigned i = 0; i < learn->replicas; i++)
        unlink(learn->reports[i]);
    learn->supposed = "there is no room for two at once";
    learn->replicas = 1;
    learn->trying = learn->over = false;
    learn->failed = 0;
    memset(learn->statuses, 0, sizeof(learn->statuses));
    learn_run_all(learn);
}

/* Two were tried. What is known of one of them alone is not measured. */
static void judge_trial(struct learn *learn) {
    read_reports(learn);
    const unsigned bad = learn->failed | learn->profiles.lacking;
    if (learn->profiles.lacking && bad == BOTH) {
        run_one_again(learn);
    } else if (bad && bad != BOTH) {
        learn->supposed = learn->profiles.lacking ? "there is no room for two at once"
                                                  : "of two at once, one failed";
        learn->first = bad == ONE;
        learn->replicas = 1;
    }
}

/* Of the first replica that failed. */
static int learn_status(const struct learn *learn) {
    for (unsigned i = 0; i < learn->replicas && !learn->over; i++)
        if (learn->statuses[learn->first + i])
            return learn->statuses[learn->first + i];
    return 0;
}

/* --- after --- */

static void tell_unused(void) {
    TOOL_TEMP char *no_driver = preload_no_driver(RUNTIME_CUDA);
    tool_error("no process used CUDA, as far as gpushare can see; %s",
               tool_or(no_driver, "who dropped the library is named by: gpushare explain -- CMD"));
}

static void tell_sums(const struct learn *learn, const struct canary_sums *sums) {
    if (!learn->profiles.looked && learn->profiles.count == 0)
        tell_unused();
    else if (!sums->taken)
        tool_error("no rule of %s would merge anything that was allocated: gpushare explain -c %s "
                   "-- CMD says why",
                   learn->rules, learn->rules);
    else if (sums->written)
        tool_error("%zu of %zu allocations that the rules take were written by a kernel, or by "
                   "other hardware, once they were quiet: merged, such a write ends the process "
                   "with error 700",
                   sums->written, sums->taken);
    else if (!sums->quiet)
        tool_error("nothing that the rules take was quiet for as long as they say: let it run "
                   "longer");
}

/* A failure of the command is another status than what was found. */
static int tell_check(struct learn *learn) {
    const int status = learn_status(learn);
    read_reports(learn);
    audit_logs_close(&learn->directory);
    const struct canary_sums sums = canary_sum(&learn->profiles);
    if (sums.taken)
        canary_report(stdout, &learn->profiles, learn->rules);
    fflush(stdout);
    if (status >= TOOL_RUN_FAILED && status <= TOOL_NOT_FOUND)
        return status;
    tell_sums(learn, &sums);
    if (status)
        tool_error("the command failed with status %d: what it would have done is not checked",
                   status);
    return sums.written ? TOOL_FAILED
           : status     ? TOOL_COMMAND_FAILED
           : sums.quiet ? TOOL_OK
                        : TOOL_BLIND;
}

/* What could not be watched. */
static void tell_created(const struct profiles *profiles) {
    const uint64_t unwatched = profiles_unwatched(profiles);
    if (unwatched)
        fprintf(stderr,
                "\nOne process made %s by cuMemCreate that was not watched: never mapped, mapped "
                "twice, above 1 GiB, or open to more than its own device.\n",
                printable_size(unwatched).text);
}

static int learn_tell(struct learn *learn, const char *path) {
    const struct profiles *profiles = &learn->profiles;
    const int status = learn_status(learn);
    read_reports(learn);
    audit_logs_close(&learn->directory);
    if (profiles->count > 0)
        profiles_table(stderr, profiles);
    if (!profiles->looked && profiles->count == 0 && status < TOOL_RUN_FAILED) {
        tell_unused();
    } else if (profiles->count == 0 && profiles->looked) {
        tool_error("nothing of 1 MiB or more was allocated");
    } else if (profiles->rule_count == 0 && profiles->count > 0) {
        tool_error("no rules: nothing stays as it was uploaded, as far as was seen");
    }
    if (profiles->rule_count == 0) {
        tell_created(profiles);
        return status ? status : TOOL_FAILED;
    }
    fprintf(stderr, "\nA second process saves %s (%s%s%s).\n",
            printable_size(profiles_saved(profiles)).text,
            learn->replicas > 1 ? "measured" : "supposed, if it uploads the same",
            learn->supposed ? ": " : "", tool_or(learn->supposed, ""));
    /* a page is a page: what lies at another distance from a multiple of 2 MiB is never found */
    const uint64_t apart = profiles_apart(profiles, learn->replicas);
    if (apart) {
        fprintf(stderr, "%s beside that stays apart: %s.\n", printable_size(apart).text,
                gps_private_why(GPS_PRIVATE_APART));
        private_apart_help(stderr, "");
    }
    tell_created(profiles);
    profiles_rules(learn->output, &learn->profiles);
    fflush(stdout);
    command_tell_next("Next", learn->command, path);
    return status;
}

static bool can_merge(const char *command, enum runtime *runtime) {
    const bool chosen = runtime_choose(NULL, command, runtime);
    if (chosen && *runtime == RUNTIME_HIP)
        tool_error("'%s' uses HIP, where nothing is merged: there are no rules to learn", command);
    return chosen && *runtime != RUNTIME_HIP;
}

static int run_learn(const struct tool_args *args) {
    struct learn learn = {.command = args->operands, .rules = args->values[OPTION_CHECK]};
    const char *path = args->values[OPTION_OUTPUT];
    enum runtime runtime;
    int status = TOOL_RUN_FAILED;
    launch_set("GPUSHARE_CONFIG", "/dev/null");
    launch_set("GPUSHARE_LOG", "/dev/null");
    launch_set("GPUSHARE_STACK_DEPTH", "0");
    command_hold_signals();
    if (learn_parse(&learn, args->values) && can_merge(learn.command[0], &runtime) &&
        (learn.output = output_open(path)) && audit_logs_open(&learn.directory, NULL) &&
        launch_prepare(NULL, "audit", runtime, learn.command[0])) {
        learn_run_all(&learn);
        if (learn.trying)
            judge_trial(&learn);
        status = learn.rules ? tell_check(&learn) : learn_tell(&learn, path);
    }
    audit_logs_close(&learn.directory);
    command_release_signals();
    profiles_free(&learn.profiles);
    for (unsigned i = 0; i < PROFILES_REPLICAS; i++)
        free(learn.reports[i]);
    return output_close(learn.output, path) ? status : TOOL_RUN_FAILED;
}

const struct tool_verb tool_verb_learn = {
    .name = "learn",
    .operands = "[--] CMD...",
    .summary = "run a command and write, or check, the rules by which its replicas share memory",
    .details = "Runs CMD unchanged, on ordinary memory, and looks which of it stays as it was "
               "uploaded. Then prints what that is on stderr, and rules for it, role = merge, on "
               "stdout.\n"
               "Let CMD do its usual work meanwhile: what it never does cannot be learned. The "
               "configuration is not read, and nothing is shared.\n\n"
               "Two run at once, with one standard input, so that what a second one saves is "
               "measured. Where one of them fails or lacks memory the other alone counts; where "
               "both lack it one is run again, alone. Then it is supposed, which is said.\n\n"
               "With --check no rules are written: what those of a file would merge is looked at, "
               "twice a second, and stdout says which of it was written by a kernel, or by other "
               "hardware, after it had been quiet for as long as its rule says. Such a write would "
               "have ended a replica. The exit status is then 0 if nothing was, 1 if something "
               "was, 3 if nothing was quiet, or no rule took anything, and 4 if CMD failed before "
               "that.\n\n"
               "The exit status is CMD's own, of several that of the first that failed, 0 after "
               "--for; 0 becomes 1 if there is no rule.\n"
               "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not "
               "found.\n",
    .options =
        {{"for", 'f', "TIME", "end CMD by SIGTERM after this time, as 2min"},
         {"replicas", 'r', "N",
          "run N at once, 1 to 16 (2): share what is equal in all of them; with 1 it is supposed "
          "that a second one uploads the same"},
         {"content", 0, "WHAT",
          "uploaded, or any: also what kernels filled and left alone for the second half of its "
          "life; its rules have content = any, and merge what is quiet for 30s"},
         {"output", 'o', "FILE",
          "write the rules to FILE, which stays as it was if there are none; the command that "
          "follows them is printed last"},
         {"check", 0, "FILE", "say whether kernels write what the merge rules of FILE take"}},
    .operands_min = 1,
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_learn,
};
