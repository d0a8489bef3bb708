/*
 * aggregate.c - counts lines of logs, and makes groups of them in the end.
 *
 * The lines of one process that a report cannot tell apart are counted in one class. Only those
 * lines are kept that can still come first in a group.
 */
#include "aggregate.h"

#include "cli/string_map.h"
#include "cli/tool.h"
#include "log/log.h"
#include "util/text.h"

/* The time of a line, and the number of lines read before it, which orders lines of one time. */
struct moment {
    char time[LOG_TIME_BYTES];
    uint64_t line;
};

/* The earliest line of a kind, or of a site. */
struct earliest {
    struct kind *kind; /* NULL: there is no line yet */
    struct moment moment;
    char *text; /* NULL: it does not come first in a group */
};

/* The lines of one process that are of one kind. */
struct class {
    const struct aggregate_process *process;
    struct moment first;
    char last[LOG_TIME_BYTES];
    uint64_t count; /* occurrences */
};

/* The lines that have finding, call and stack in common. */
struct kind {
    struct earliest line;
    struct class **classes;
    size_t number, class_count;
    enum gps_level level; /* the highest */
    struct aggregate_group group;
};

/* The lines of one call site of a process. Those without a stack belong to the kind of the earliest
 * one, which is known in the end. */
struct site {
    struct earliest line;
    const struct aggregate_process *process;
    struct class *stackless; /* NULL: there are none */
};

struct aggregate_state {
    enum gps_level level;
    uint64_t lines;
    int64_t pid_ns; /* the first that occurred */
    struct string_map *process_map, *kind_map, *site_map, *class_map;
    struct kind **kinds;
    struct site **sites; /* with stackless lines */
    size_t process_count, kind_count, site_count;
    char key[2 * LOGS_LINE_MAX];
};

const struct log_stack *aggregate_stack(const struct log_line *line) {
    for (size_t i = line->prior.count; line->stack.count == 0 && i > 0; i--)
        if (line->prior.events[i - 1].stack.count > 0)
            return &line->prior.events[i - 1].stack;
    return &line->stack;
}

/* --- what lines have in common: equal things have equal keys, for which there is room --- */

static const struct aggregate_process *aggregate_process_of(struct aggregate_state *state,
                                                            const struct log_process *facts) {
    const char *command = tool_or(facts->command, ""), *arguments = tool_or(facts->arguments, "");
    const size_t length = strlen(command) + 1;
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_add(&key, "%lu %lu %s", (uint64_t)facts->pid_ns, (uint64_t)facts->pid, command);
    struct aggregate_process *process = string_map_make(
        &state->process_map, state->key, sizeof(*process) + length + strlen(arguments) + 1);
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
    const struct aggregate_process *process = aggregate_process_of(state, &line->process);
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_dec(&key, process->number);
    if (line->site)
        gps_text_strs(&key, " ", line->site);
    else
        gps_text_strs(&key, "\n", line->finding, " ", line->api);
    struct site *site = string_map_make(&state->site_map, state->key, sizeof(*site));
    site->process = process;
    return site;
}

static struct kind *aggregate_kind_of(struct aggregate_state *state, const struct log_line *line) {
    const struct log_stack *stack = aggregate_stack(line);
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_strs(&key, line->finding, " ", line->api, "\n");
    TOOL_EACH(const struct log_frame, frame, stack->frames, stack->count) {
        const char *module = tool_or(frame->build_id, log_frame_module(frame));
        gps_text_add(&key, "%s %lx", tool_or(module, ""), frame->offset);
        if (frame->function)
            gps_text_add(&key, " %s %lu", frame->function, (uint64_t)frame->line);
        gps_text_str(&key, "\n");
    }
    struct kind *kind = string_map_make(&state->kind_map, state->key, sizeof(*kind));
    if (kind->number == 0) {
        TOOL_APPEND(state->kinds, state->kind_count, kind);
        kind->number = state->kind_count;
    }
    return kind;
}

static struct class *aggregate_class_of(struct aggregate_state *state, struct kind *kind,
                                        const struct aggregate_process *process) {
    struct gps_text key = GPS_TEXT(state->key);
    gps_text_add(&key, "%lu %lu", (uint64_t)kind->number, (uint64_t)process->number);
    struct class *class = string_map_make(&state->class_map, state->key, sizeof(*class));
    if (!class->process) {
        class->process = process;
        TOOL_APPEND(kind->classes, kind->class_count, class);
    }
    return class;
}

/* --- lines --- */

static int moment_compare(const struct moment *a, const struct moment *b) {
    return strcmp(a->time, b->time) ?: tool_compare(a->line, b->line);
}

static void note_line(struct earliest *line, struct kind *kind, const struct moment *moment,
                      const char *text) {
    if (line->kind && moment_compare(&line->moment, moment) <= 0)
        return;
    free(line->text);
    *line = (struct earliest){kind, *moment, tool_copy(text)};
}

static void class_add(struct class *class, const struct class *more) {
    if (class->count == 0 || moment_compare(&more->first, &class->first) < 0)
        class->first = more->first;
    if (strcmp(more->last, class->last) > 0)
        strcpy(class->last, more->last);
    class->count += more->count;
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

const struct aggregate_group *aggregate_add_line(struct aggregate *aggregate,
                                                 const struct log_line *line, const char *text) {
    struct aggregate_state *state = aggregate->state;
    if (!line->finding || line->level < state->level)
        return NULL;
    struct site *site = site_of(state, line);
    struct kind *kind = aggregate_kind_of(state, line);
    const bool stacked = aggregate_stack(line)->count > 0;
    if (line->level > kind->level)
        kind->level = line->level;
    struct class one = {.count = line->count > 0 ? (uint64_t)line->count : 1};
    strcpy(one.first.time, line->ts); /* log_line_parse has checked its length */
    strcpy(one.last, line->ts);
    one.first.line = state->lines++;
    note_line(&site->line, kind, &one.first, stacked ? NULL : text);
    if (stacked) {
        note_line(&kind->line, kind, &one.first, text);
    } else if (!site->stackless) {
        site->stackless = tool_zeroed(1, sizeof(*site->stackless));
        TOOL_APPEND(state->sites, state->site_count, site);
    }
    class_add(stacked ? aggregate_class_of(state, kind, site->process) : site->stackless, &one);
    note_namespaces(aggregate, line);
    return &kind->group;
}

const char *aggregate_add(void *arg, const char *text, size_t length) {
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (!line)
        return wrong;
    aggregate_add_line(arg, line, text);
    log_line_free(line);
    return NULL;
}

/* --- groups --- */

/* A line without a stack counts repeats, or is a first one where stacks are switched off. */
static void add_stackless(struct aggregate_state *state, const struct site *site) {
    struct kind *kind = site->line.kind;
    if (site->line.text)
        note_line(&kind->line, kind, &site->line.moment, site->line.text);
    class_add(aggregate_class_of(state, kind, site->process), site->stackless);
}

static int classes_by_time(const void *left, const void *right) {
    const struct class *a = *(struct class *const *)left, *b = *(struct class *const *)right;
    return moment_compare(&a->first, &b->first);
}

static int kinds_by_time(const void *left, const void *right) {
    const struct kind *a = *(struct kind *const *)left, *b = *(struct kind *const *)right;
    return moment_compare(&a->line.moment, &b->line.moment);
}

/* A process can have left a few, and another one many. */
static void set_level(struct log_line *line, enum gps_level level) {
    if (line->level == level)
        return;
    line->level = level;
    json_object_set_new(line->json, "level", json_string(gps_level_name(level)));
}

static void add_group(struct aggregate *aggregate, struct kind *kind) {
    const char *wrong;
    struct class all = {.count = 0};
    struct aggregate_group *group = &kind->group;
    group->first = log_line_parse(kind->line.text, strlen(kind->line.text), true, &wrong);
    set_level(group->first, kind->level);
    group->number = aggregate->count;
    group->processes = tool_zeroed(kind->class_count, sizeof(*group->processes));
    TOOL_SORT(kind->classes, kind->class_count, classes_by_time);
    for (size_t i = 0; i < kind->class_count; i++) {
        group->processes[group->process_count++] = kind->classes[i]->process;
        class_add(&all, kind->classes[i]);
    }
    group->count = all.count;
    strcpy(group->last, all.last);
    TOOL_APPEND(aggregate->groups, aggregate->count, group);
}

void aggregate_begin(struct aggregate *aggregate, enum gps_level level) {
    *aggregate = (struct aggregate){.state = tool_zeroed(1, sizeof(*aggregate->state))};
    aggregate->state->level = level;
}

void aggregate_end(struct aggregate *aggregate) {
    struct aggregate_state *state = aggregate->state;
    for (size_t i = 0; i < state->site_count; i++)
        add_stackless(state, state->sites[i]);
    TOOL_SORT(state->kinds, state->kind_count, kinds_by_time);
    for (size_t i = 0; i < state->kind_count; i++)
        if (state->kinds[i]->class_count > 0)
            add_group(aggregate, state->kinds[i]);
}

static void clear_kind(void *value) {
    struct kind *kind = value;
    if (kind->group.first)
        log_line_free(kind->group.first);
    free(kind->group.processes);
    free(kind->line.text);
    free(kind->classes);
}

static void clear_site(void *value) {
    struct site *site = value;
    free(site->line.text);
    free(site->stackless);
}

void aggregate_free(struct aggregate *aggregate) {
    TOOL_TEMP struct aggregate_state *state = aggregate->state;
    free(aggregate->groups);
    string_map_free(&state->process_map, NULL);
    string_map_free(&state->kind_map, clear_kind);
    string_map_free(&state->site_map, clear_site);
    string_map_free(&state->class_map, NULL);
    free(state->kinds);
    free(state->sites);
}

/* --- sums --- */

size_t aggregate_processes(const struct aggregate *aggregate) {
    return aggregate->state->process_count;
}

struct aggregate_sums aggregate_sums(const struct aggregate *aggregate) {
    struct aggregate_sums sums = {.suppressed = 0};
    TOOL_TEMP bool *seen = tool_zeroed(aggregate->state->process_count + 1, sizeof(*seen));
    for (size_t i = 0; i < aggregate->count; i++) {
        const struct aggregate_group *group = aggregate->groups[i];
        sums.suppressed += group->suppressed && !group->known;
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
    return sums;
}
