/* explained.c - see explained.h. */
#include "explained.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"

#define INDENT 8 /* of what became of an allocation */

/* --- reading --- */

static int by_pid(const void *left, const void *right) {
    const struct gps_explained *const *a = left, *const *b = right;
    return tool_compare((*a)->pid, (*b)->pid);
}

/* Ends every string of the file within its array. */
static void terminate(struct gps_explained *process) {
    process->program[sizeof(process->program) - 1] = 0;
    process->executable[sizeof(process->executable) - 1] = 0;
    process->arguments[sizeof(process->arguments) - 1] = 0;
    for (size_t i = 0; i < GPS_EXPLAINED_ROWS; i++) {
        struct gps_explained_row *row = &process->rows[i];
        row->call[sizeof(row->call) - 1] = row->caller[sizeof(row->caller) - 1] = 0;
        row->region[sizeof(row->region) - 1] = row->why[sizeof(row->why) - 1] = 0;
    }
}

void explained_read(struct explained *explained, const char *path) {
    struct gps_explained *process = tool_zeroed(1, sizeof(*process));
    FILE *file = fopen(path, "re");
    const bool whole = file && fread(process, sizeof(*process), 1, file) == 1;
    if (file)
        fclose(file);
    if (!whole || memcmp(process->magic, GPS_EXPLAINED_MAGIC, sizeof(process->magic)) != 0) {
        free(process);
        return;
    }
    terminate(process);
    explained->processes =
        tool_grow(explained->processes, explained->count, sizeof(*explained->processes));
    explained->processes[explained->count++] = process;
    qsort(explained->processes, explained->count, sizeof(*explained->processes), by_pid);
}

void explained_free(struct explained *explained) {
    for (size_t i = 0; i < explained->count; i++)
        free(explained->processes[i]);
    free(explained->processes);
}

/* --- why a rule does not take an allocation --- */

/* The first key of a rule that an allocation does not fit: the later, the nearer it came. */
enum miss {
    MISS_PROGRAM,
    MISS_SIZE,
    MISS_DEVICE,
    MISS_POOL,
    MISS_CALLER,
    MISS_INDEX,
};

static const char *const keys[] = {
    [MISS_PROGRAM] = "program", [MISS_SIZE] = "size",     [MISS_DEVICE] = "device",
    [MISS_POOL] = "backing",    [MISS_CALLER] = "caller", [MISS_INDEX] = "index"};

static enum miss miss_of(const struct gps_rule *rule, const struct gps_explained *process,
                         const struct gps_explained_row *row) {
    const struct gps_alloc_facts facts = {.program = process->program,
                                          .executable = process->executable,
                                          .size = row->size,
                                          .device_ordinal = row->device,
                                          .device_uuid = row->uuid,
                                          .pool = row->pool};
    switch (gps_rule_mismatch(rule, &facts)) {
    case GPS_OTHER_PROGRAM:
        return MISS_PROGRAM;
    case GPS_OTHER_SIZE:
        return MISS_SIZE;
    case GPS_OTHER_DEVICE:
        return MISS_DEVICE;
    case GPS_POOL_MEMORY:
        return MISS_POOL;
    default:
        return gps_glob_match(rule->caller, row->caller) ? MISS_INDEX : MISS_CALLER;
    }
}

struct search {
    const char *key;
    char *found;
};

static void compare(void *arg, const char *key, const char *value) {
    struct search *search = arg;
    if (strcmp(key, search->key) == 0)
        search->found = tool_format("%s = %s", key, value);
}

/* The key that was missed with its value, as a file has it: "size = 65MiB"; malloc'ed. */
static char *miss_key(enum miss miss, const struct gps_rule *rule) {
    struct search search = {keys[miss], NULL};
    gps_rule_each_key(rule, compare, &search);
    return search.found;
}

/* "this is number 3", "these are numbers from 1 to 7"; malloc'ed. */
static char *number_text(const struct gps_rule *rule, const struct gps_explained_row *row) {
    for (size_t i = 0; i < GPS_EXPLAINED_PASSED; i++) {
        const struct gps_explained_pass *pass = &row->passed[i];
        if (pass->rule == rule->line && pass->first == pass->last)
            return tool_format("this is number %" PRIu64, pass->first);
        if (pass->rule == rule->line)
            return tool_format("these have numbers from %" PRIu64 " to %" PRIu64, pass->first,
                               pass->last);
    }
    return tool_copy("this is another one that it fits");
}

/* What is so of the allocation, and not as the key says; malloc'ed. */
static char *contrary_text(enum miss miss, const struct gps_rule *rule,
                           const struct gps_explained *process,
                           const struct gps_explained_row *row) {
    switch (miss) {
    case MISS_PROGRAM:
        return tool_format("this is %s", process->program);
    case MISS_SIZE:
        return tool_format("this is %s", printable_size_value(row->size).text);
    case MISS_DEVICE:
        return tool_format("this is on GPU %" PRIu32 " (%s)", row->device,
                           printable_uuid(row->uuid).text);
    case MISS_POOL:
        return tool_format("%s needs backing = vmm", row->call);
    case MISS_CALLER:
        return tool_format("%s calls", row->caller);
    default:
        return number_text(rule, row);
    }
}

/* "not by [region frames], line 4: size = 65MiB, and this is 64 MiB"; malloc'ed. */
static char *miss_text(const char *before, enum miss miss, const struct gps_rule *rule,
                       const struct gps_explained *process, const struct gps_explained_row *row) {
    char *key = miss_key(miss, rule), *contrary = contrary_text(miss, rule, process, row);
    char *text = tool_format("%s [region %s], line %u: %s, and %s", before, rule->name, rule->line,
                             key, contrary);
    free(contrary);
    free(key);
    return text;
}

/* --- allocations --- */

static void print_line(FILE *out, char *text) {
    fprintf(out, "%*s", INDENT, "");
    wrap_text(out, text, INDENT);
    free(text);
}

static bool is_for(const struct gps_rule *rule, const struct gps_explained *process) {
    return gps_rule_is_for(rule, process->program, process->executable);
}

/* "but it was left private: ...": the report has the reason, and more behind it; malloc'ed. */
static char *why_private(const struct gps_explained_row *row) {
    static const char besides[] = "; the allocation is private";
    const char *end = strstr(row->why, besides);
    const int length = (int)(end ? (size_t)(end - row->why) : strlen(row->why));
    return tool_format("but it was left private%s%.*s", length > 0 ? ": " : "", length, row->why);
}

/* "exported as frames"; malloc'ed. */
static char *outcome_text(const struct gps_explained_row *row) {
    switch (row->outcome) {
    case GPS_EXPLAINED_EXPORTED:
        return tool_format("exported as %s", row->region);
    case GPS_EXPLAINED_IMPORTED:
        return tool_format("imported from %s", row->region);
    case GPS_EXPLAINED_MERGED:
        return tool_copy("its blocks are merged");
    case GPS_EXPLAINED_FAILED:
        return tool_format("the allocation failed (missing = fail): %s", row->why);
    default:
        return why_private(row);
    }
}

static const struct gps_rule *rule_at(const struct gps_config *config, uint32_t line) {
    for (size_t i = 0; i < config->rule_count; i++)
        if (config->rules[i].line == line)
            return &config->rules[i];
    return NULL;
}

static void print_row(FILE *out, const struct explained *explained,
                      const struct gps_explained *process, const struct gps_explained_row *row) {
    const struct gps_config *config = explained->config;
    const struct gps_rule *taken_by = rule_at(config, row->rule);
    term_line(out, "  %4" PRIu64 "x  %-10s %s in %s", row->count, printable_size(row->size).text,
              row->call, row->caller);
    if (taken_by) {
        char *outcome = outcome_text(row);
        print_line(out, tool_format("taken by [region %s], line %u: %s", taken_by->name,
                                    taken_by->line, outcome));
        free(outcome);
        return;
    }
    bool any = false;
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (!is_for(rule, process))
            continue;
        any = true;
        print_line(out, miss_text("not by", miss_of(rule, process, row), rule, process, row));
    }
    if (!any)
        print_line(out, tool_copy("no rule is for this program"));
}

#define FEW_RULES 4 /* more rules for other programs are only counted */

static void print_rules_of_others(FILE *out, const struct explained *explained,
                                  const struct gps_explained *process) {
    const struct gps_config *config = explained->config;
    size_t others = 0;
    for (size_t i = 0; i < config->rule_count; i++)
        others += !is_for(&config->rules[i], process);
    if (others > FEW_RULES)
        fprintf(out, "  %zu rules are for other programs.\n", others);
    for (size_t i = 0; i < config->rule_count && others <= FEW_RULES; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (is_for(rule, process))
            continue;
        char *why = miss_text("not for it:", MISS_PROGRAM, rule, process, NULL);
        term_line(out, "  %s", why);
        free(why);
    }
}

static void print_process(FILE *out, const struct explained *explained,
                          const struct gps_explained *process) {
    fputc('\n', out);
    term_line(out, "%s (pid %" PRIu32 ")%s%s", process->program, process->pid,
              process->arguments[0] ? ": " : "", process->arguments);
    print_rules_of_others(out, explained, process);
    for (size_t i = 0; i < GPS_EXPLAINED_ROWS && process->rows[i].count; i++)
        print_row(out, explained, process, &process->rows[i]);
    if (!process->rows[0].count)
        fputs("  It allocated nothing that rules are for: cudaMalloc, cudaMallocPitch,\n"
              "  cudaMalloc3D, cudaMallocAsync and the driver's calls beneath.\n",
              out);
    if (process->lost)
        fprintf(out, "  %" PRIu64 " more allocations of other kinds are not listed.\n",
                process->lost);
}

bool explained_any_private(const struct explained *explained) {
    for (size_t i = 0; i < explained->count; i++)
        for (size_t j = 0; j < GPS_EXPLAINED_ROWS && explained->processes[i]->rows[j].count; j++) {
            const struct gps_explained_row *row = &explained->processes[i]->rows[j];
            if (row->rule && row->outcome == GPS_EXPLAINED_PRIVATE)
                return true;
        }
    return false;
}

void explained_print_allocations(FILE *out, const struct explained *explained) {
    for (size_t i = 0; i < explained->count; i++)
        print_process(out, explained, explained->processes[i]);
}

/* --- rules that never matched --- */

struct nearest {
    enum miss miss;
    const struct gps_explained_row *row; /* NULL: no program that the rule is for allocated */
    uint64_t distance;                   /* in bytes */
    uint64_t count;
    bool matched;
};

static uint64_t distance(const struct gps_rule *rule, uint64_t size) {
    return size < rule->size_min ? rule->size_min - size : size - rule->size_max;
}

static void consider(struct nearest *nearest, const struct gps_rule *rule,
                     const struct gps_explained *process, const struct gps_explained_row *row) {
    const enum miss miss = miss_of(rule, process, row);
    const uint64_t away = miss == MISS_SIZE ? distance(rule, row->size) : 0;
    if (miss == MISS_PROGRAM)
        return;
    if (nearest->row && nearest->miss == miss && nearest->distance == away) {
        nearest->count += row->count;
    } else if (!nearest->row || miss > nearest->miss ||
               (miss == nearest->miss && away < nearest->distance)) {
        nearest->miss = miss;
        nearest->row = row;
        nearest->distance = away;
        nearest->count = row->count;
    }
}

static struct nearest find_nearest(const struct explained *explained, const struct gps_rule *rule) {
    struct nearest nearest = {.miss = MISS_PROGRAM};
    for (size_t i = 0; i < explained->count; i++) {
        const struct gps_explained *process = explained->processes[i];
        for (size_t j = 0; j < GPS_EXPLAINED_ROWS && process->rows[j].count; j++) {
            const struct gps_explained_row *row = &process->rows[j];
            nearest.matched |= row->rule == rule->line;
            if (!row->rule || row->rule >= rule->line)
                consider(&nearest, rule, process, row);
        }
    }
    return nearest;
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

/* "64MiB was asked for 3 times"; malloc'ed. */
static char *near_text(const struct explained *explained, const struct nearest *nearest) {
    char times[32], *text, *programs;
    snprintf(times, sizeof(times), "%" PRIu64 " times", nearest->count);
    if (nearest->count <= 2)
        strcpy(times, nearest->count == 1 ? "once" : "twice");
    switch (nearest->miss) {
    case MISS_PROGRAM:
        programs = programs_text(explained);
        text = tool_format("CUDA was used by %s", tool_or(programs, "no program"));
        free(programs);
        return text;
    case MISS_SIZE:
        return tool_format("%s was asked for %s", printable_size_value(nearest->row->size).text,
                           times);
    case MISS_DEVICE:
        return tool_format("GPU %" PRIu32 " was used %s", nearest->row->device, times);
    case MISS_POOL:
        return tool_format("%s, which needs backing = vmm, was called %s", nearest->row->call,
                           times);
    case MISS_CALLER:
        return tool_format("%s called %s", nearest->row->caller, times);
    default:
        return tool_format("only others that fit came, %s", times);
    }
}

void explained_print_misses(FILE *out, const struct explained *explained) {
    const char *title = "\nRules that matched nothing:\n";
    for (size_t i = 0; i < explained->config->rule_count; i++) {
        const struct gps_rule *rule = &explained->config->rules[i];
        const struct nearest nearest = find_nearest(explained, rule);
        if (nearest.matched)
            continue;
        char *key = miss_key(nearest.miss, rule), *near = near_text(explained, &nearest);
        char *line = tool_format("[region %s], line %u: %s: %s", rule->name, rule->line, key, near);
        fprintf(out, "%s  ", title);
        wrap_text(out, line, 2);
        title = "";
        free(line);
        free(near);
        free(key);
    }
    if (title[0])
        fputs(explained->config->rule_count ? "\nEvery rule matched.\n" : "", out);
}
