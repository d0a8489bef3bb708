/*
 * aggregate.c - the logs of many processes as one aggregate.
 */
#include "aggregate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"

/* While the story is told: which group a call site of a process, and a kind of finding, is of. */
struct teller {
    struct aggregate *aggregate;
    struct string_map *sites, *kinds;
    int64_t pid_ns; /* the first that occurs */
};

const char *tool_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const struct log_stack *aggregate_stack(const struct log_line *line) {
    for (size_t i = line->prior.count; line->stack.count == 0 && i > 0; i--)
        if (line->prior.events[i - 1].stack.count > 0)
            return &line->prior.events[i - 1].stack;
    return &line->stack;
}

/* --- names for what is equal --- */

/* Text of any length: what is written between the two is the result, malloc'ed. */
struct key {
    char *text;
    size_t size;
    FILE *file;
};

static void begin_key(struct key *key) {
    key->file = open_memstream(&key->text, &key->size);
    if (!key->file)
        tool_no_memory();
}

static const char *or_none(const char *string) {
    return string != NULL ? string : "";
}

static void put_process(struct key *key, const struct log_process *process) {
    fprintf(key->file, "%" PRId64 " %" PRId64 " %s\n", process->pid_ns, process->pid,
            or_none(process->command));
}

static char *end_key(struct key *key) {
    fclose(key->file);
    return key->text;
}

static char *process_key(const struct log_process *process) {
    struct key key;
    begin_key(&key);
    put_process(&key, process);
    return end_key(&key);
}

/* A site that is not known is told by what else a line of repeats has of the first. */
static char *site_key(const struct log_line *line) {
    struct key key;
    begin_key(&key);
    put_process(&key, &line->process);
    fprintf(key.file, "%s\n", or_none(line->site));
    if (!line->site)
        fprintf(key.file, "%s %s", line->finding, or_none(line->api));
    return end_key(&key);
}

static char *kind_key(const struct log_line *line) {
    const struct log_stack *stack = aggregate_stack(line);
    struct key key;
    begin_key(&key);
    fprintf(key.file, "%s %s\n", line->finding, or_none(line->api));
    for (size_t i = 0; i < stack->count; i++) {
        const struct log_frame *frame = &stack->frames[i];
        const char *module = frame->build_id != NULL ? frame->build_id : frame->module;
        fprintf(key.file, "%s %" PRIx64 "\n", tool_base_name(or_none(module)), frame->offset);
    }
    return end_key(&key);
}

/* --- groups --- */

static struct aggregate_group *new_group(struct aggregate *aggregate, const struct log_line *line) {
    struct aggregate_group *group = tool_resize(NULL, 1, sizeof(*group));
    *group = (struct aggregate_group){.first = line};
    aggregate->groups = tool_grow(aggregate->groups, aggregate->count, sizeof(group));
    aggregate->groups[aggregate->count++] = group;
    return group;
}

/* A line without a stack stands for repeats, or for a first where stacks are switched off. */
static struct aggregate_group *group_of(struct teller *teller, const struct log_line *line) {
    char *site = site_key(line), *kind = kind_key(line);
    struct aggregate_group *group =
        line->stack.count == 0 ? string_map_get(teller->sites, site) : NULL;
    if (!group)
        group = string_map_get(teller->kinds, kind);
    if (!group) {
        group = new_group(teller->aggregate, line);
        string_map_put(&teller->kinds, kind, group);
    }
    if (string_map_get(teller->sites, site) == NULL)
        string_map_put(&teller->sites, site, group);
    free(site);
    free(kind);
    return group;
}

static void add_process(struct aggregate_group *group, const struct log_process *process) {
    char *key = process_key(process);
    if (string_map_get(group->seen, key) == NULL) {
        string_map_put(&group->seen, key, group);
        group->processes =
            tool_grow(group->processes, group->process_count, sizeof(*group->processes));
        group->processes[group->process_count++] = *process;
    }
    free(key);
}

static void note_namespace(struct teller *teller, int64_t pid_ns) {
    if (teller->pid_ns == 0)
        teller->pid_ns = pid_ns;
    else if (pid_ns != 0 && pid_ns != teller->pid_ns)
        teller->aggregate->namespaces = true;
}

static void note_namespaces(struct teller *teller, const struct log_line *line) {
    note_namespace(teller, line->process.pid_ns);
    for (size_t i = 0; i < line->prior.count; i++)
        note_namespace(teller, line->prior.events[i].process.pid_ns);
    for (size_t i = 0; i < line->others.count; i++)
        note_namespace(teller, line->others.events[i].process.pid_ns);
}

static void tell(struct teller *teller, const struct log_line *line) {
    struct aggregate_group *group = group_of(teller, line);
    group->count += line->count > 0 ? (uint64_t)line->count : 1;
    group->last = line->ts;
    add_process(group, &line->process);
    note_namespaces(teller, line);
}

void aggregate_make(struct aggregate *aggregate, const struct logs *logs, enum gps_level level) {
    struct teller teller = {.aggregate = aggregate};
    *aggregate = (struct aggregate){NULL, 0, false};
    for (size_t i = 0; i < logs->count; i++)
        if (logs->lines[i]->finding && logs->lines[i]->level >= level)
            tell(&teller, logs->lines[i]);
    string_map_free(&teller.sites, NULL);
    string_map_free(&teller.kinds, NULL);
}

void aggregate_free(struct aggregate *aggregate) {
    for (size_t i = 0; i < aggregate->count; i++) {
        string_map_free(&aggregate->groups[i]->seen, NULL);
        free(aggregate->groups[i]->processes);
        free(aggregate->groups[i]);
    }
    free(aggregate->groups);
}

/* --- sums --- */

static uint64_t count_new(struct string_map **seen, const struct aggregate_group *group) {
    uint64_t count = 0;
    for (size_t i = 0; i < group->process_count; i++) {
        char *key = process_key(&group->processes[i]);
        if (string_map_get(*seen, key) == NULL) {
            string_map_put(seen, key, group->processes);
            count++;
        }
        free(key);
    }
    return count;
}

struct aggregate_sums aggregate_sums(const struct aggregate *aggregate) {
    struct aggregate_sums sums = {.suppressed = 0};
    struct string_map *seen = NULL;
    for (size_t i = 0; i < aggregate->count; i++) {
        const struct aggregate_group *group = aggregate->groups[i];
        sums.suppressed += group->suppressed;
        if (group->suppressed)
            continue;
        sums.findings[group->first->level]++;
        sums.occurrences += group->count;
        sums.processes += count_new(&seen, group);
    }
    string_map_free(&seen, NULL);
    return sums;
}
