/*
 * aggregate.c - the findings of many processes, aggregated.
 */
#include "aggregate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"

/* An aggregate in the making: its groups by call site of a process, and by kind of finding. */
struct builder {
    struct aggregate *aggregate;
    struct string_map *sites, *kinds;
    int64_t pid_ns; /* the first that occurs */
};

const struct log_stack *aggregate_stack(const struct log_line *line) {
    for (size_t i = line->prior.count; line->stack.count == 0 && i > 0; i--)
        if (line->prior.events[i - 1].stack.count > 0)
            return &line->prior.events[i - 1].stack;
    return &line->stack;
}

/* --- keys: equal things have equal keys, malloc'ed --- */

static char *process_key(const struct log_process *process) {
    return tool_format("%" PRId64 " %" PRId64 " %s\n", process->pid_ns, process->pid,
                       tool_or(process->command, ""));
}

/* Without a known site, a line of repeats has the finding and the call in common with the first. */
static char *site_key(const struct log_line *line) {
    char *process = process_key(&line->process);
    char *key = line->site
                    ? tool_format("%s%s\n", process, line->site)
                    : tool_format("%s\n%s %s", process, line->finding, tool_or(line->api, ""));
    free(process);
    return key;
}

static char *kind_key(const struct log_line *line) {
    const struct log_stack *stack = aggregate_stack(line);
    char *key;
    size_t size;
    FILE *file = open_memstream(&key, &size);
    if (!file)
        tool_no_memory();
    fprintf(file, "%s %s\n", line->finding, tool_or(line->api, ""));
    for (size_t i = 0; i < stack->count; i++) {
        const struct log_frame *frame = &stack->frames[i];
        const char *module = frame->build_id ? frame->build_id : tool_or(frame->module, "");
        fprintf(file, "%s %" PRIx64 "\n", tool_base_name(module), frame->offset);
    }
    fclose(file);
    return key;
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
static struct aggregate_group *group_of(struct builder *builder, const struct log_line *line) {
    char *site = site_key(line), *kind = kind_key(line);
    struct aggregate_group *group =
        line->stack.count == 0 ? string_map_get(builder->sites, site) : NULL;
    if (!group)
        group = string_map_get(builder->kinds, kind);
    if (!group) {
        group = new_group(builder->aggregate, line);
        string_map_put(&builder->kinds, kind, group);
    }
    string_map_put(&builder->sites, site, group);
    free(site);
    free(kind);
    return group;
}

static void add_process(struct aggregate_group *group, const struct log_process *process) {
    char *key = process_key(process);
    if (string_map_put(&group->seen, key, group)) {
        group->processes =
            tool_grow(group->processes, group->process_count, sizeof(*group->processes));
        group->processes[group->process_count++] = *process;
    }
    free(key);
}

static void note_namespace(struct builder *builder, int64_t pid_ns) {
    if (builder->pid_ns == 0)
        builder->pid_ns = pid_ns;
    else if (pid_ns != 0 && pid_ns != builder->pid_ns)
        builder->aggregate->namespaces = true;
}

static void note_namespaces(struct builder *builder, const struct log_line *line) {
    note_namespace(builder, line->process.pid_ns);
    for (size_t i = 0; i < line->prior.count; i++)
        note_namespace(builder, line->prior.events[i].process.pid_ns);
    for (size_t i = 0; i < line->others.count; i++)
        note_namespace(builder, line->others.events[i].process.pid_ns);
}

static void add_line(struct builder *builder, const struct log_line *line) {
    struct aggregate_group *group = group_of(builder, line);
    group->count += line->count > 0 ? (uint64_t)line->count : 1;
    group->last = line->ts;
    add_process(group, &line->process);
    note_namespaces(builder, line);
}

void aggregate_make(struct aggregate *aggregate, const struct logs *logs, enum gps_level level) {
    struct builder builder = {.aggregate = aggregate};
    *aggregate = (struct aggregate){NULL, 0, false};
    for (size_t i = 0; i < logs->count; i++)
        if (logs->lines[i]->finding && logs->lines[i]->level >= level)
            add_line(&builder, logs->lines[i]);
    string_map_free(&builder.sites, NULL);
    string_map_free(&builder.kinds, NULL);
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
        count += string_map_put(seen, key, group->processes);
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
        sums.all++;
        sums.findings[group->first->level]++;
        sums.occurrences += group->count;
        sums.processes += count_new(&seen, group);
    }
    string_map_free(&seen, NULL);
    return sums;
}
