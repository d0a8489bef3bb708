/*
 * aggregate.c - counts lines of logs, and makes groups of them in the end.
 *
 * Lines of a process that a report cannot tell apart are a class. When all are read, each class
 * counts as if it were one line, in the order of time. Only those lines are kept that can still
 * come first in a group.
 */
#include "aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"
#include "util/text.h"

#define NEVER (~(log_moment)0)

/* The lines that have finding, call and stack in common. */
struct kind {
    struct class *first; /* the class with the earliest line; NULL: they have no stack */
    struct aggregate_group *group;
};

/* The lines of a site that have no stack, or those of one kind. */
struct class {
    log_moment first, last;
    uint64_t count;     /* occurrences */
    struct site *site;  /* NULL: the class has no line yet */
    struct kind *kind;  /* of the earliest line */
    struct class *next; /* of the site */
    char *text;         /* the earliest line; NULL: it does not come first in a group */
    bool stacked;
};

/* The lines of one call site of a process. */
struct site {
    struct class classes; /* the first of them: mostly there is one */
    const struct aggregate_process *process;
    struct aggregate_group *group; /* of its earliest line */
};

struct aggregate_state {
    enum gps_level level;
    uint64_t lines;
    int64_t pid_ns; /* the first that occurred */
    struct string_map *processes, *kinds, *sites;
    struct class **classes;
    size_t process_count, class_count;
    char key[2 * LOGS_LINE_MAX];
};

const struct log_stack *aggregate_stack(const struct log_line *line) {
    for (size_t i = line->prior.count; line->stack.count == 0 && i > 0; i--)
        if (line->prior.events[i - 1].stack.count > 0)
            return &line->prior.events[i - 1].stack;
    return &line->stack;
}

/* --- what lines have in common: equal things have equal keys, for which there is room --- */

static const struct aggregate_process *process_of(struct aggregate_state *state,
                                                  const struct log_process *facts) {
    const char *command = tool_or(facts->command, ""), *arguments = tool_or(facts->arguments, "");
    const size_t length = strlen(command) + 1;
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_add(&key, "%lu %lu %s", (uint64_t)facts->pid_ns, (uint64_t)facts->pid, command);
    struct aggregate_process *process = string_map_make(
        &state->processes, state->key, sizeof(*process) + length + strlen(arguments) + 1);
    if (process->facts.pid == 0) {
        process->facts = *facts;
        process->facts.command = command[0] != 0 ? strcpy(process->texts, command) : NULL;
        process->facts.arguments =
            arguments[0] != 0 ? strcpy(process->texts + length, arguments) : NULL;
        process->number = state->process_count++;
    }
    return process;
}

/* Without a known site, a line of repeats has the finding and the call in common with the first. */
static struct site *site_of(struct aggregate_state *state, const struct log_line *line) {
    const struct aggregate_process *process = process_of(state, &line->process);
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_dec(&key, process->number);
    if (line->site)
        gps_text_strs(&key, " ", line->site);
    else
        gps_text_strs(&key, "\n", line->finding, " ", line->api);
    struct site *site = string_map_make(&state->sites, state->key, sizeof(*site));
    site->process = process;
    return site;
}

static const char *module_of(const struct log_frame *frame) {
    return frame->build_id ? frame->build_id : tool_or(log_frame_module(frame), "");
}

static struct kind *kind_of(struct aggregate_state *state, const struct log_line *line) {
    const struct log_stack *stack = aggregate_stack(line);
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_strs(&key, line->finding, " ", line->api, "\n");
    for (size_t i = 0; i < stack->count; i++) {
        const struct log_frame *frame = &stack->frames[i];
        gps_text_add(&key, "%s %lx", module_of(frame), frame->offset);
        if (frame->function)
            gps_text_add(&key, " %s %lu", frame->function, (uint64_t)frame->line);
        gps_text_str(&key, "\n");
    }
    return string_map_make(&state->kinds, state->key, sizeof(struct kind));
}

static struct class *class_of(struct aggregate_state *state, struct site *site, struct kind *kind,
                              bool stacked) {
    struct class *class = &site->classes;
    for (; class->site; class = class->next) {
        if (class->stacked == stacked && (!stacked || class->kind == kind))
            return class;
        if (!class->next)
            class->next = tool_zeroed(1, sizeof(*class));
    }
    *class = (struct class){.first = NEVER, .site = site, .stacked = stacked};
    state->classes = tool_grow(state->classes, state->class_count, sizeof(class));
    return state->classes[state->class_count++] = class;
}

/* --- lines --- */

static bool is_first(const struct site *site, log_moment moment) {
    const struct class *class = &site->classes;
    while (class && class->first >= moment)
        class = class->next;
    return !class;
}

static void forget_text(struct class *class) {
    free(class->text);
    class->text = NULL;
}

/* Keeps the line if it can come first in a group. With a stack, that is the earliest of its kind;
 * without one, the line belongs to the group of an earlier line of its site. */
static void set_first(struct class *class, struct kind *kind, log_moment moment, const char *text) {
    const bool later = class->stacked ? kind->first && kind->first->first < moment
                                      : !is_first(class->site, moment);
    class->first = moment;
    class->kind = kind;
    forget_text(class);
    if (later)
        return;
    class->text = tool_copy(text);
    if (class->stacked && kind->first && kind->first != class)
        forget_text(kind->first);
    if (class->stacked)
        kind->first = class;
}

static void note_namespace(struct aggregate *aggregate, int64_t pid_ns) {
    int64_t *first = &aggregate->state->pid_ns;
    if (*first == 0)
        *first = pid_ns;
    aggregate->namespaces |= pid_ns != 0 && pid_ns != *first;
}

static void note_namespaces(struct aggregate *aggregate, const struct log_line *line) {
    note_namespace(aggregate, line->process.pid_ns);
    for (size_t i = 0; i < line->prior.count; i++)
        note_namespace(aggregate, line->prior.events[i].process.pid_ns);
    for (size_t i = 0; i < line->others.count; i++)
        note_namespace(aggregate, line->others.events[i].process.pid_ns);
}

static void count_line(struct aggregate *aggregate, const struct log_line *line, const char *text) {
    struct aggregate_state *state = aggregate->state;
    struct site *site = site_of(state, line);
    struct kind *kind = kind_of(state, line);
    struct class *class = class_of(state, site, kind, aggregate_stack(line)->count > 0);
    log_moment moment;
    log_line_moment(line->ts, state->lines++, &moment);
    class->count += line->count > 0 ? (uint64_t)line->count : 1;
    if (moment > class->last)
        class->last = moment;
    if (moment < class->first)
        set_first(class, kind, moment, text);
    note_namespaces(aggregate, line);
}

const char *aggregate_add(void *arg, const char *text, size_t length) {
    struct aggregate *aggregate = arg;
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (!line)
        return wrong;
    if (line->finding && line->level >= aggregate->state->level)
        count_line(aggregate, line, text);
    log_line_free(line);
    return NULL;
}

/* --- groups --- */

static struct aggregate_group *new_group(struct aggregate *aggregate, const struct class *class) {
    const char *wrong;
    struct aggregate_group *group = tool_zeroed(1, sizeof(*group));
    group->first = log_line_parse(class->text, strlen(class->text), true, &wrong);
    aggregate->groups = tool_grow(aggregate->groups, aggregate->count, sizeof(group));
    return aggregate->groups[aggregate->count++] = group;
}

/* A line without a stack counts repeats, or is a first one where stacks are switched off. */
static struct aggregate_group *group_of(struct aggregate *aggregate, struct class *class) {
    struct site *site = class->site;
    struct kind *kind = class->kind;
    if (!class->stacked && site->group)
        return site->group;
    if (!kind->group)
        kind->group = new_group(aggregate, class);
    if (!site->group)
        site->group = kind->group;
    return kind->group;
}

static void add_class(struct aggregate *aggregate, struct class *class) {
    struct aggregate_group *group = group_of(aggregate, class);
    group->count += class->count;
    if (class->last > group->last_moment)
        group->last_moment = class->last;
    group->processes = tool_grow(group->processes, group->process_count, sizeof(*group->processes));
    group->processes[group->process_count++] = class->site->process;
}

/* Lists each process of the group once. `seen` has for each process the number of the last group,
 * from 1 on, in which it was. */
static void finish(struct aggregate_group *group, size_t number, size_t *seen) {
    size_t count = 0;
    for (size_t i = 0; i < group->process_count; i++) {
        const struct aggregate_process *process = group->processes[i];
        if (seen[process->number] != number)
            group->processes[count++] = process;
        seen[process->number] = number;
    }
    group->process_count = count;
    log_line_time(group->last_moment, group->last);
}

static int by_time(const void *left, const void *right) {
    const struct class *a = *(struct class *const *)left, *b = *(struct class *const *)right;
    return (a->first > b->first) - (a->first < b->first);
}

void aggregate_begin(struct aggregate *aggregate, enum gps_level level) {
    *aggregate = (struct aggregate){.state = tool_zeroed(1, sizeof(*aggregate->state))};
    aggregate->state->level = level;
}

/* Frees all but the processes, which the groups still name. */
static void free_state(struct aggregate_state *state) {
    for (size_t i = 0; i < state->class_count; i++) {
        struct class *class = state->classes[i];
        free(class->text);
        if (class != &class->site->classes)
            free(class);
    }
    free(state->classes);
    string_map_free(&state->sites, NULL);
    string_map_free(&state->kinds, NULL);
}

void aggregate_end(struct aggregate *aggregate) {
    struct aggregate_state *state = aggregate->state;
    size_t *seen = tool_zeroed(state->process_count + 1, sizeof(*seen));
    if (state->class_count > 0)
        qsort(state->classes, state->class_count, sizeof(*state->classes), by_time);
    for (size_t i = 0; i < state->class_count; i++)
        add_class(aggregate, state->classes[i]);
    for (size_t i = 0; i < aggregate->count; i++)
        finish(aggregate->groups[i], i + 1, seen);
    free(seen);
    free_state(state);
}

void aggregate_free(struct aggregate *aggregate) {
    for (size_t i = 0; i < aggregate->count; i++) {
        log_line_free(aggregate->groups[i]->first);
        free(aggregate->groups[i]->processes);
        free(aggregate->groups[i]);
    }
    free(aggregate->groups);
    string_map_free(&aggregate->state->processes, NULL);
    free(aggregate->state);
}

/* --- the group of a line --- */

static bool is_same_frame(const struct log_frame *a, const struct log_frame *b) {
    return a->offset == b->offset && strcmp(module_of(a), module_of(b)) == 0 &&
           strcmp(tool_or(a->function, ""), tool_or(b->function, "")) == 0 && a->line == b->line;
}

static bool is_same(const struct log_stack *a, const struct log_stack *b) {
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = is_same_frame(&a->frames[i], &b->frames[i]);
    return same;
}

const struct aggregate_group *aggregate_group_of(const struct aggregate *aggregate,
                                                 const struct log_line *line) {
    for (size_t i = 0; i < aggregate->count; i++) {
        const struct log_line *first = aggregate->groups[i]->first;
        if (strcmp(first->finding, line->finding) == 0 &&
            strcmp(tool_or(first->api, ""), tool_or(line->api, "")) == 0 &&
            is_same(aggregate_stack(first), aggregate_stack(line)))
            return aggregate->groups[i];
    }
    return NULL;
}

/* --- sums --- */

size_t aggregate_processes(const struct aggregate *aggregate) {
    return aggregate->state->process_count;
}

struct aggregate_sums aggregate_sums(const struct aggregate *aggregate) {
    struct aggregate_sums sums = {.suppressed = 0};
    bool *seen = tool_zeroed(aggregate->state->process_count + 1, sizeof(*seen));
    for (size_t i = 0; i < aggregate->count; i++) {
        const struct aggregate_group *group = aggregate->groups[i];
        sums.suppressed += group->suppressed;
        if (group->suppressed)
            continue;
        sums.all++;
        sums.findings[group->first->level]++;
        sums.occurrences += group->count;
        for (size_t j = 0; j < group->process_count; j++) {
            bool *known = &seen[group->processes[j]->number];
            sums.processes += !*known;
            *known = true;
        }
    }
    free(seen);
    return sums;
}
