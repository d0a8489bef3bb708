/*
 * explain.c - `gpushare explain`: runs a command, and says for each allocation which rule took it;
 * or says what a finding means.
 *
 * The rules are followed as with `gpushare run`, for only then is it known what becomes of a match.
 */
#include <dirent.h>

#include "cli/environment.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/temporary.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"
#include "directory/accounting.h"
#include "directory/view.h"
#include "explain.h"
#include "fit.h"
#include "frame_words.h"
#include "gpushare/explained.h"
#include "report/explain_finding.h"
#include "report/suppress.h"
#include "run/command.h"
#include "run/launch.h"
#include "run/vendor.h"
#include "run/watched.h"
#include "util/nearest.h"

enum { OPTION_CONFIG, OPTION_LIST, OPTION_OUTPUT, OPTION_FIT, OPTION_RUNTIME };

#define INDENT 8 /* of the outcome of an allocation */

/* --- reading --- */

/* What the processes of a run allocated (gpushare/explained.h), against its rules. */
struct explained {
    const struct gps_config *config;
    struct gps_explained **processes; /* by pid */
    size_t count;
    size_t roomless;  /* processes whose file had no room */
    bool any_private; /* an allocation that a rule took was left private */
    bool *told;       /* by rule: what orders its exporter and importers is said already */
};

static int by_pid(const void *left, const void *right) {
    const struct gps_explained *const *a = left, *const *b = right;
    return tool_compare((*a)->pid, (*b)->pid);
}

/* Ends every string of the file within its array. */
static void terminate(struct gps_explained *process) {
    process->program[sizeof(process->program) - 1] = 0;
    process->executable[sizeof(process->executable) - 1] = 0;
    process->arguments[sizeof(process->arguments) - 1] = 0;
    TOOL_EACH(struct gps_explained_row, row, process->rows, GPS_EXPLAINED_ROWS) {
        row->call[sizeof(row->call) - 1] = row->caller[sizeof(row->caller) - 1] = 0;
        row->region[sizeof(row->region) - 1] = row->why[sizeof(row->why) - 1] = 0;
    }
    for (size_t i = 0; i < GPS_EXPLAINED_FRAMES; i++)
        process->frames[i].name[sizeof(process->frames[i].name) - 1] = 0;
}

/* Reads the file of a process; one that is not whole is left out. */
static void explained_read_process(struct explained *explained, const char *path) {
    struct gps_explained *process = tool_zeroed(1, sizeof(*process));
    FILE *file = fopen(path, "re");
    const bool whole = file && fread(process, sizeof(*process), 1, file) == 1;
    explained->roomless += file && ftell(file) == 0;
    if (file)
        fclose(file);
    if (!whole || memcmp(process->magic, GPS_EXPLAINED_MAGIC, sizeof(process->magic)) != 0) {
        free(process);
        return;
    }
    terminate(process);
    TOOL_APPEND(explained->processes, explained->count, process);
}

static void free_explained(struct explained *explained) {
    for (size_t i = 0; i < explained->count; i++)
        free(explained->processes[i]);
    free(explained->processes);
    free(explained->told);
}

static void read_all(const char *directory, struct explained *explained) {
    DIR *dir = opendir(directory);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        TOOL_TEMP char *path = tool_format("%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            explained_read_process(explained, path);
    }
    if (dir)
        closedir(dir);
    TOOL_SORT(explained->processes, explained->count, by_pid);
}

/* --- why a rule does not take an allocation --- */

/* The first key of a rule that an allocation does not fit: the later, the nearer it came. These
 * come behind those of enum gps_mismatch. */
enum { MISSED_CALLER = GPS_CREATED_MEMORY + 1, MISSED_INDEX };

static const char *const keys[] = {[GPS_OTHER_PROGRAM] = "program",  [GPS_OTHER_SIZE] = "size",
                                   [GPS_OTHER_DEVICE] = "device",    [GPS_POOL_MEMORY] = "backing",
                                   [GPS_CREATED_MEMORY] = "created", [MISSED_CALLER] = "caller",
                                   [MISSED_INDEX] = "index"};

static int miss_of(const struct gps_rule *rule, const struct gps_explained *process,
                   const struct gps_explained_row *row) {
    const struct gps_alloc_facts facts = {.program = process->program,
                                          .executable = process->executable,
                                          .size = row->size,
                                          .device_ordinal = row->device,
                                          .device_uuid = row->uuid,
                                          .pool = row->pool,
                                          .created = strcmp(row->call, "cuMemCreate") == 0};
    const enum gps_mismatch mismatch = gps_rule_mismatch(rule, &facts);
    if (mismatch != GPS_FITS)
        return (int)mismatch;
    return gps_glob_match(rule->caller, row->caller) ? MISSED_INDEX : MISSED_CALLER;
}

struct search {
    const char *key;
    char *found;
};

static void search_compare_key(void *arg, const char *key, const char *value) {
    struct search *search = arg;
    if (strcmp(key, search->key) == 0)
        search->found = tool_format("%s = %s", key, value);
}

/* The key that was missed with its value, as a file has it: "size = 65MiB"; malloc'ed. */
static char *miss_key(int miss, const struct gps_rule *rule) {
    const bool merge = rule->role == GPS_ROLE_MERGE;
    const bool role = merge ? miss == GPS_POOL_MEMORY : miss == GPS_CREATED_MEMORY;
    struct search search = {role ? "role" : keys[miss], NULL};
    gps_rule_each_key(rule, search_compare_key, &search);
    return search.found;
}

/* "this is number 3", "these are numbers from 1 to 7"; malloc'ed. */
static char *number_text(const struct gps_rule *rule, const struct gps_explained_row *row) {
    TOOL_EACH(const struct gps_explained_pass, pass, row->passed, GPS_EXPLAINED_PASSED) {
        if (pass->rule == rule->line && pass->first == pass->last)
            return tool_format("this is number %" PRIu64, pass->first);
        if (pass->rule == rule->line)
            return tool_format("these have numbers from %" PRIu64 " to %" PRIu64, pass->first,
                               pass->last);
    }
    return tool_copy("this is another one that it fits");
}

/* The property of the allocation that differs from the key; malloc'ed. */
static char *contrary_text(int miss, const struct gps_rule *rule,
                           const struct gps_explained *process,
                           const struct gps_explained_row *row) {
    switch (miss) {
    case GPS_OTHER_PROGRAM:
        return tool_format("this is %s%s", process->program,
                           gps_glob_match_any_case(rule->program, process->program)
                               ? ", which differs in case only"
                               : "");
    case GPS_OTHER_SIZE:
        return tool_format("this is size = %s", printable_size_value(row->size).text);
    case GPS_OTHER_DEVICE:
        return tool_format("this is on GPU %" PRIu32 " (%s)", row->device,
                           printable_uuid(row->uuid).text);
    case GPS_POOL_MEMORY:
        return tool_format(rule->role == GPS_ROLE_MERGE ? "%s gives memory of a pool"
                                                        : "%s needs backing = vmm",
                           row->call);
    case GPS_CREATED_MEMORY:
        return tool_format("%s makes memory that the program maps itself%s", row->call,
                           rule->role == GPS_ROLE_MERGE ? "; created = on takes it" : "");
    case MISSED_CALLER:
        return tool_format("%s calls", row->caller);
    default:
        return number_text(rule, row);
    }
}

/* "not by [region frames], line 4: size = 65MiB, and this is size = 64MiB"; malloc'ed. */
static char *miss_text(const char *before, int miss, const struct gps_rule *rule,
                       const struct gps_explained *process, const struct gps_explained_row *row) {
    TOOL_TEMP char *key = miss_key(miss, rule), *contrary = contrary_text(miss, rule, process, row);
    return tool_format("%s [region %s], line %u: %s, and %s", before, rule->name, rule->line, key,
                       contrary);
}

/* --- allocations --- */

static bool explained_rule_is_for(const struct gps_rule *rule,
                                  const struct gps_explained *process) {
    return gps_rule_is_for(rule, process->program, process->executable);
}

/* "but it was left private: ...": the report has the reason, and more behind it; malloc'ed. */
static char *why_private(const struct gps_rule *rule, const struct gps_explained_row *row) {
    const char *why = row->why[0] ? row->why
                      : rule->role == GPS_ROLE_MERGE && row->size < GPS_MERGE_LEAST
                          ? "allocations below 1 MiB are never merged"
                          : "there was no memory for it, and the program's own call was answered";
    const char *end = strstr(why, "; the allocation is private");
    return tool_format("but it was left private: %.*s",
                       (int)(end ? (size_t)(end - why) : strlen(why)), why);
}

/* "exported as frames"; malloc'ed. */
static char *outcome_text(const struct gps_rule *rule, const struct gps_explained_row *row) {
    switch (row->outcome) {
    case GPS_EXPLAINED_EXPORTED:
        return tool_format("exported as %s", row->region);
    case GPS_EXPLAINED_IMPORTED:
        return tool_format("imported from %s", row->region);
    case GPS_EXPLAINED_MERGED:
        return tool_copy("its blocks may be merged");
    case GPS_EXPLAINED_EXCLUDED:
        return tool_copy("but it is not merged: a process that had merged it ended with error 700; "
                         "after `gpushare forget` it is tried again");
    case GPS_EXPLAINED_REFUSED:
        return tool_format("the allocation %s", row->why);
    case GPS_EXPLAINED_FAILED:
        return tool_format("the allocation failed (missing = fail): %s", row->why);
    default:
        return why_private(rule, row);
    }
}

static const struct gps_rule *rule_at(const struct gps_config *config, uint32_t line) {
    for (size_t i = 0; i < config->rule_count; i++)
        if (config->rules[i].line == line)
            return &config->rules[i];
    return NULL;
}

/* Once for each rule that exports. With ready = free importers come when all is written. */
static void print_order(struct explained *explained, const struct gps_rule *rule,
                        const struct gps_explained_row *row) {
    bool *told = &explained->told[rule - explained->config->rules];
    if (row->outcome != GPS_EXPLAINED_EXPORTED || rule->ready == GPS_READY_FREE || *told)
        return;
    *told = true;
    TOOL_TEMP char *frames = frame_words(rule);
    term_say(stderr, INDENT, "%s",
             tool_or(frames, "nothing orders the two programs: an importer may see half of what "
                             "is being written (frames = latest or each gives it whole frames)"));
}

static void explained_print_row(struct explained *explained, const struct gps_explained *process,
                                const struct gps_explained_row *row) {
    const struct gps_config *config = explained->config;
    const struct gps_rule *taken_by = rule_at(config, row->rule);
    term_line(stderr, "  %4" PRIu64 "x  size = %-9s %s in %s", row->count,
              printable_size_value(row->size).text, row->call, row->caller);
    if (taken_by) {
        TOOL_TEMP char *outcome = outcome_text(taken_by, row);
        term_say(stderr, INDENT, "taken by [region %s], line %u: %s", taken_by->name,
                 taken_by->line, outcome);
        print_order(explained, taken_by, row);
        explained->any_private |=
            row->outcome == GPS_EXPLAINED_PRIVATE && taken_by->role != GPS_ROLE_MERGE;
        return;
    }
    if (row->rule) {
        term_say(stderr, INDENT,
                 "taken by line %" PRIu32 " of another configuration, which the "
                 "command names itself: see gpushare explain -c FILE -- CMD",
                 row->rule);
        return;
    }
    bool any = false;
    TOOL_EACH(const struct gps_rule, rule, config->rules, config->rule_count) {
        if (!explained_rule_is_for(rule, process))
            continue;
        any = true;
        TOOL_TEMP char *miss = miss_text("not by", miss_of(rule, process, row), rule, process, row);
        term_say(stderr, INDENT, "%s", miss);
    }
    if (!any)
        term_say(stderr, INDENT, "no rule is for this program");
}

/* The rule that took memory for merging, and merges the soonest; NULL: none took any. */
static const struct gps_rule *soonest(const struct explained *explained,
                                      const struct gps_explained *process) {
    const struct gps_rule *found = NULL;
    for (size_t i = 0; i < GPS_EXPLAINED_ROWS && process->rows[i].count; i++) {
        const struct gps_explained_row *row = &process->rows[i];
        const struct gps_rule *rule =
            row->outcome == GPS_EXPLAINED_MERGED ? rule_at(explained->config, row->rule) : NULL;
        if (rule && (!found || rule->quiet < found->quiet))
            found = rule;
    }
    return found;
}

/* Why nothing was merged where nothing was in the way; malloc'ed. */
static char *not_merging_text(const struct gps_rule *rule, const struct gps_explained *process) {
    const uint64_t lived = process->ended - process->began;
    const struct printable quiet = printable_duration(rule->quiet);
    const char *filled =
        rule->content == GPS_CONTENT_ANY ? "" : "copies from the host had filled and that ";
    if (process->ended && lived < rule->quiet)
        return tool_format("it ended %s after the first of these allocations, and a block is "
                           "merged when it has not changed for %s (quiet). Let it run longer, or "
                           "give the rule a shorter quiet.",
                           printable_duration(lived).text, quiet.text);
    if (rule->quiet)
        return tool_format("there was no whole block that %shad not changed for %s (quiet).",
                           filled, quiet.text);
    const bool none_filled = process->private_bytes[GPS_PRIVATE_UNFILLED] &&
                             !process->private_bytes[GPS_PRIVATE_WAITING];
    return tool_copy(none_filled ? "copies from the host filled no whole block."
                                 : "it ended before its blocks were merged.");
}

/* Prints the outcome of memory that merge rules took. */
static void print_merged(const struct explained *explained, const struct gps_explained *process) {
    const struct gps_rule *rule = soonest(explained, process);
    if (process->unmerged) {
        term_line(stderr, "  When it ended, nothing was merged: %s.",
                  gps_not_merging_why(process->unmerged));
    } else if (rule && process->merged) {
        term_line(stderr, "  Merged, at most at a time: %s.",
                  printable_whole_size(process->merged).text);
    } else if (rule) {
        TOOL_TEMP char *why = not_merging_text(rule, process);
        term_say(stderr, 2, "Nothing was merged: %s", why);
    }
}

/* Prints the memory that was left out of the program's own sums. */
static void print_untold(const struct gps_explained *process) {
    if (process->untold)
        term_say(stderr, 2,
                 "cudaMemGetInfo told it less than is free, by up to %s, which merging has saved "
                 "(free = steady).",
                 printable_whole_size(process->untold).text);
}

/* How much of it is not merged, or saves nothing, and why. */
static void print_private(const struct gps_explained *process) {
    const char *before = "When it was last looked at, this was private";
    for (enum gps_private why = 0; why < GPS_PRIVATE_APART; why++) {
        if (process->private_bytes[why] == 0)
            continue;
        term_say(stderr, 2, "%s: %s: %s.", before,
                 printable_whole_size(process->private_bytes[why]).text, gps_private_why(why));
        before = "And this";
    }
    if (process->private_bytes[GPS_PRIVATE_APART] == 0)
        return;
    term_say(stderr, 2, "Merged, but in no other %s: %s: %s.", process->program,
             printable_whole_size(process->private_bytes[GPS_PRIVATE_APART]).text,
             gps_private_why(GPS_PRIVATE_APART));
    private_apart_help(stderr, "  ");
}

#define FEW_RULES 4 /* more rules for other programs are only counted */

static void print_rules_of_others(const struct explained *explained,
                                  const struct gps_explained *process) {
    const struct gps_config *config = explained->config;
    size_t others = 0;
    for (size_t i = 0; i < config->rule_count; i++)
        others += !explained_rule_is_for(&config->rules[i], process);
    if (others > FEW_RULES)
        fprintf(stderr, "  %zu rules are for other programs.\n", others);
    for (size_t i = 0; i < config->rule_count && others <= FEW_RULES; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (explained_rule_is_for(rule, process))
            continue;
        TOOL_TEMP char *why = miss_text("not for it:", GPS_OTHER_PROGRAM, rule, process, NULL);
        term_line(stderr, "  %s", why);
    }
}

static void print_process(struct explained *explained, const struct gps_explained *process) {
    fputc('\n', stderr);
    term_line(stderr, "%s (pid %" PRIu32 ")%s%s", process->program, process->pid,
              process->arguments[0] ? ", arguments: " : "", process->arguments);
    print_rules_of_others(explained, process);
    for (size_t i = 0; i < GPS_EXPLAINED_ROWS && process->rows[i].count; i++)
        explained_print_row(explained, process, &process->rows[i]);
    if (!process->rows[0].count)
        fputs("  It allocated nothing that rules are for: cudaMalloc, cudaMallocPitch,\n"
              "  cudaMalloc3D, cudaMallocAsync and the driver's calls beneath, and cuMemCreate\n"
              "  for memory of a GPU.\n",
              stderr);
    print_merged(explained, process);
    print_untold(process);
    print_private(process);
    if (process->lost)
        fprintf(stderr, "  %" PRIu64 " more allocations of other kinds are not listed.\n",
                process->lost);
}

/* --- rules that never matched --- */

struct nearest {
    int miss;
    uint64_t distance;                   /* in bytes */
    const struct gps_explained_row *row; /* NULL: no program that the rule is for allocated */
    uint64_t count;
};

static void consider(struct nearest *nearest, const struct gps_rule *rule,
                     const struct gps_explained *process, const struct gps_explained_row *row) {
    const int miss = miss_of(rule, process, row);
    const uint64_t away = miss == GPS_OTHER_SIZE ? gps_rule_size_distance(rule, row->size) : 0;
    if (miss == nearest->miss && away == nearest->distance)
        nearest->count += row->count;
    else if (miss > nearest->miss || (miss == nearest->miss && away < nearest->distance))
        *nearest = (struct nearest){miss, away, row, row->count};
}

/* The allocation that came nearest to a rule. False: one matched. */
static bool find_nearest(const struct explained *explained, const struct gps_rule *rule,
                         struct nearest *nearest) {
    *nearest = (struct nearest){.miss = GPS_OTHER_PROGRAM};
    for (size_t i = 0; i < explained->count; i++) {
        const struct gps_explained *process = explained->processes[i];
        for (size_t j = 0; j < GPS_EXPLAINED_ROWS && process->rows[j].count; j++) {
            const struct gps_explained_row *row = &process->rows[j];
            if (row->rule == rule->line)
                return false;
            if (!row->rule || row->rule > rule->line)
                consider(nearest, rule, process, row);
        }
    }
    return true;
}

/* "camera, viewer"; malloc'ed. */
static char *programs_text(const struct explained *explained) {
    char *programs = NULL;
    for (size_t i = 0; i < explained->count; i++) {
        const char *name = explained->processes[i]->program;
        size_t first = 0;
        while (strcmp(explained->processes[first]->program, name) != 0)
            first++;
        if (first == i)
            tool_list(&programs, "%s", name);
    }
    return programs;
}

/* "CUDA was used by camera, viewer; perhaps viewer"; malloc'ed. */
static char *other_programs_text(const struct explained *explained, const struct gps_rule *rule) {
    struct gps_nearest nearest = {.word = rule->program};
    TOOL_TEMP char *programs = programs_text(explained);
    for (size_t i = 0; i < explained->count; i++)
        if (!explained_rule_is_for(rule, explained->processes[i]))
            gps_nearest_try(&nearest, explained->processes[i]->program);
    return tool_format("CUDA was used by %s%s%s", tool_or(programs, "no program"),
                       nearest.found ? "; perhaps " : "", tool_or(nearest.found, ""));
}

/* "size = 64MiB was asked for 3 times"; malloc'ed. */
static char *near_text(const struct explained *explained, const struct gps_rule *rule,
                       const struct nearest *nearest) {
    char times[32];
    snprintf(times, sizeof(times), "%" PRIu64 " times", nearest->count);
    if (nearest->count <= 2)
        strcpy(times, nearest->count == 1 ? "once" : "twice");
    switch (nearest->miss) {
    case GPS_OTHER_PROGRAM:
        return other_programs_text(explained, rule);
    case GPS_OTHER_SIZE:
        return tool_format("size = %s was asked for %s",
                           printable_size_value(nearest->row->size).text, times);
    case GPS_OTHER_DEVICE:
        return tool_format("GPU %" PRIu32 " was used %s", nearest->row->device, times);
    case GPS_POOL_MEMORY:
    case GPS_CREATED_MEMORY:
        return tool_format("%s, whose memory %s, was called %s", nearest->row->call,
                           nearest->miss == GPS_CREATED_MEMORY && rule->role == GPS_ROLE_MERGE
                               ? "created = on takes"
                               : "it does not take",
                           times);
    case MISSED_CALLER:
        return tool_format("%s called %s", nearest->row->caller, times);
    default:
        return tool_format("only others that fit came, %s", times);
    }
}

static void print_misses(const struct explained *explained) {
    const char *title = "\nRules that matched nothing:\n";
    TOOL_EACH(const struct gps_rule, rule, explained->config->rules,
              explained->config->rule_count) {
        struct nearest nearest;
        if (!find_nearest(explained, rule, &nearest))
            continue;
        TOOL_TEMP char *key = miss_key(nearest.miss, rule);
        TOOL_TEMP char *near = near_text(explained, rule, &nearest);
        fputs(title, stderr);
        term_say(stderr, 2, "[region %s], line %u: %s: %s", rule->name, rule->line, key, near);
        title = "";
    }
    if (title[0])
        fputs(explained->config->rule_count ? "\nEvery rule matched.\n" : "", stderr);
}

/* --- the report --- */

/* Says where a partner that did not come may be. */
static void print_remedies(void) {
    TOOL_TEMP char *others = view_other_users();
    fputc('\n', stderr);
    term_say(stderr, 0,
             "An allocation was left private: `gpushare ls` says who shares in this directory, "
             "`gpushare doctor` whether that works here.%s%s%s",
             others ? " " : "", tool_or(others, ""), others ? "." : "");
}

static void print_title(const struct gps_config *config) {
    TOOL_TEMP char *none = environment_no_config();
    fprintf(stderr, "\n%s", term_colour_on(stderr, TERM_BOLD));
    if (config->source[0])
        fprintf(stderr, "%s: %zu rule%s\n", config->source, config->rule_count,
                config->rule_count == 1 ? "" : "s");
    else
        wrap_text(stderr, none, 0);
    fputs(term_colour_on(stderr, TERM_PLAIN), stderr);
}

/* False: the configuration was checked before, but was changed meanwhile. */
static bool explained_print(struct explained *explained, struct gps_config *config) {
    if (gps_config_load(config, NULL, NULL) != 0)
        return false;
    print_title(config);
    explained->told = tool_zeroed(config->rule_count + 1, sizeof(*explained->told));
    for (size_t i = 0; i < explained->count; i++)
        print_process(explained, explained->processes[i]);
    if (explained->count > 0)
        print_misses(explained);
    if (explained->any_private)
        print_remedies();
    gps_config_free(config);
    return true;
}

/* `pair`: what became of the allocations is not said. */
static int explain_run_command(char **command, const char *directory, struct watched *watched,
                               FILE *output, bool pair) {
    struct command_left left;
    struct gps_config config;
    struct explained explained = {.config = &config};
    const int status = command_run(command, COMMAND_AND_DESCENDANTS, watched, &left);
    if (status < 0)
        return launch_failed(command[0], -status);
    read_all(directory, &explained);
    bool all = pair || explained_print(&explained, &config);
    if (output)
        fit_write(output, explained.processes, explained.count);
    if (explained.roomless > 0) {
        tool_error("of %zu process%s nothing is known: '%s' has no room for a file of %zu KiB, or "
                   "ulimit -f allows none; raise the limit, or set TMPDIR",
                   explained.roomless, explained.roomless == 1 ? "" : "es", directory,
                   sizeof(struct gps_explained) >> 10);
        all = false;
    }
    all &= watched_all(watched, explained.count + explained.roomless, pair ? "pair" : "explain",
                       command[0], status);
    if (left.count > 0 && !pair)
        tool_warn("%zu still running: %s; what they allocate from now on is not shown", left.count,
                  left.names);
    free_explained(&explained);
    free(left.names);
    return status == 0 && !all ? TOOL_FAILED : status;
}

static int explain_command(char **command, const char *config, const char *runtime_name,
                           const char *path, bool pair) {
    char directory[PATH_MAX];
    struct watched watched;
    enum runtime runtime;
    int status = TOOL_RUN_FAILED;
    if (!runtime_choose(runtime_name, command[0], &runtime))
        return status;
    FILE *output = path ? output_open(path) : NULL;
    command_hold_signals();
    if ((path && !output) || !temporary_make(directory, ""))
        return status;
    watched_begin(&watched, runtime, NULL, false);
    launch_set("GPUSHARE_EXPLAIN", directory);
    if (launch_prepare(config, "share", runtime, command[0]))
        status = explain_run_command(command, directory, &watched, output, pair);
    watched_end(&watched);
    temporary_remove(directory);
    command_release_signals();
    if (!output_close(output, path))
        status = TOOL_RUN_FAILED;
    return status;
}

int explain_keep(char **command, const char *config, const char *path) {
    return explain_command(command, config, NULL, path, true);
}

static int explain_names(char **names) {
    const char *unknown = explain_finding_unknown(names);
    if (!unknown) {
        explain_findings(names);
        return TOOL_OK;
    }
    const char *near = suppress_nearest(unknown);
    tool_error(
        "'%s' is no finding%s%s; gpushare explain --list has all; a command stands behind --",
        unknown, near ? ", but perhaps " : "", tool_or(near, ""));
    return TOOL_FAILED;
}

static int explain_fit(const struct tool_args *args) {
    char *const *files = args->operands;
    if (args->operand_count == 2 && !args->values[OPTION_LIST]) {
        const struct fit_side a = {files[0], files[0]}, b = {files[1], files[1]};
        struct fit_rules rules;
        if (!fit_find(&rules, &a, &b))
            return TOOL_FAILED;
        fit_print(stdout, &rules, "");
        fit_free(&rules);
        return TOOL_OK;
    }
    tool_error("--fit takes two files of `gpushare explain -o FILE -- CMD`, the exporter's first");
    return TOOL_USAGE;
}

static int run_explain(const struct tool_args *args) {
    const bool list = args->values[OPTION_LIST];
    if (args->values[OPTION_FIT])
        return explain_fit(args);
    if (args->separated && args->operand_count > 0 && !list)
        return explain_command(args->operands, args->values[OPTION_CONFIG],
                               args->values[OPTION_RUNTIME], args->values[OPTION_OUTPUT], false);
    if (list != (args->operand_count == 0)) {
        tool_error(list ? "neither a FINDING nor a command goes with --list"
                        : "-- CMD, a FINDING or --list is missing; see: gpushare explain --help");
        return TOOL_USAGE;
    }
    if (!list)
        return explain_names(args->operands);
    explain_finding_list();
    return TOOL_OK;
}

const struct tool_verb tool_verb_explain = {
    .name = "explain",
    .operands = "-- CMD...|FINDING...",
    .summary = "say which rule took each allocation of a command, or what a finding means",
    .details = "FINDING is an id, as double-free, or a glob, as 'open-*': explained in full.\n\n"
               "Runs CMD as `gpushare run -m share` does: the rules are followed, and waited "
               "for. When it has ended a line for each process and allocation (equal ones once, "
               "with their number) says on stderr its size, as a rule has it, the call, the "
               "module that called, and the rule that took it, or for each rule of its program "
               "the first reason against it: program, size, device, backing, role (of "
               "cudaMallocAsync), caller or index. Of memory of a merge rule it says how much "
               "was merged at most, or why nothing was; of a rule that exports, what an importer "
               "sees of memory that is being written. At the end stand the rules that matched "
               "nothing, with what came nearest.\n"
               "The exit status is CMD's own; 0 becomes 1 if a process that used CUDA, or any, "
               "could not be watched.\n"
               "125: gpushare itself failed, 126: CMD cannot be executed, 127: CMD was not "
               "found.\n\n"
               "`gpushare explain --fit FILE FILE`: an allocation fits one of its size on the "
               "same GPU, or one that is less than twice as large; of several of one size the "
               "n-th fits the n-th. The exit status is 1 if nothing fits.\n",
    .options =
        {{"config", 'c', "FILE", "CMD: use this configuration (checked first)"},
         {"list", 'l', NULL, "list all findings, in groups"},
         {"output", 'o', "FILE", "CMD: keep what it allocated, as JSON, for --fit"},
         {"fit", 0, NULL,
          "of two such FILEs: say on stderr which allocations fit together, and print two rules "
          "for the likeliest, the largest of equal size: the first one's program exports"},
         RUNTIME_OPTION},
    .command = true,
    .usage_status = TOOL_RUN_FAILED,
    .run = run_explain,
};
