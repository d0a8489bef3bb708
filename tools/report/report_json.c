/*
 * report_json.c - a story as JSON: the first line of each finding, with what was found out since.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/json_tree.h"
#include "report.h"

/* --- frames --- */

static void set_place(json_t *object, const struct symbol_place *place) {
    char *path = symbol_path(place);
    json_tree_set_string(object, "function", place->function);
    json_tree_set_string(object, "file", path);
    json_tree_set(object, "line", place->line > 0 ? json_integer(place->line) : json_null());
    free(path);
}

static json_t *frame_tree(const struct log_frame *frame, struct symbols *symbols) {
    const struct symbol *symbol = symbol_find(symbols, frame);
    json_t *object = json_tree_object(), *inlined = json_tree_array();
    char offset[24];
    snprintf(offset, sizeof(offset), "0x%" PRIx64, frame->offset);
    json_tree_set_string(object, "module", frame->module);
    json_tree_set_string(object, "offset", offset);
    json_tree_set_string(object, "build_id", frame->build_id);
    set_place(object, &symbol->places[symbol->count - 1]);
    for (size_t i = 0; i + 1 < symbol->count; i++) {
        json_t *call = json_tree_object();
        set_place(call, &symbol->places[i]);
        json_tree_append(inlined, call);
    }
    json_tree_set(object, "inlined", inlined);
    json_tree_set_string(object, "note", symbol->note);
    return object;
}

json_t *report_stack_tree(const struct log_stack *stack, struct symbols *symbols) {
    json_t *array = json_tree_array();
    for (size_t i = 0; i < stack->count; i++)
        json_tree_append(array, frame_tree(&stack->frames[i], symbols));
    return array;
}

/* --- processes and events --- */

static json_t *process_tree(const struct log_process *process) {
    json_t *object = json_tree_object();
    json_tree_set_number(object, "pid", process->pid);
    json_tree_set(object, "pid_ns",
                  process->pid_ns != 0 ? json_integer(process->pid_ns) : json_null());
    json_tree_set_string(object, "command", process->command);
    return object;
}

static json_t *prior_tree(const struct log_events *prior, struct symbols *symbols) {
    json_t *array = json_tree_array();
    for (size_t i = 0; i < prior->count; i++) {
        const struct log_event *event = &prior->events[i];
        json_t *object = process_tree(&event->process);
        json_tree_set_string(object, "what", event->what);
        json_tree_set_string(object, "ts", event->ts);
        json_tree_set(object, "stack", report_stack_tree(&event->stack, symbols));
        json_tree_append(array, object);
    }
    return array;
}

static json_t *others_tree(const struct log_events *others) {
    json_t *array = json_tree_array();
    for (size_t i = 0; i < others->count; i++) {
        json_t *object = process_tree(&others->events[i].process);
        json_tree_set_string(object, "since", others->events[i].ts);
        json_tree_append(array, object);
    }
    return array;
}

static json_t *processes_tree(const struct aggregate_group *group) {
    json_t *array = json_tree_array();
    for (size_t i = 0; i < group->process_count; i++)
        json_tree_append(array, process_tree(&group->processes[i]));
    return array;
}

/* --- findings --- */

/* The keys that are copied; what an older library does not write is null. */
static void copy_line(json_t *object, const json_t *line) {
    static const char *const keys[] = {
        "ts",   "pid",    "pid_ns", "tid",    "command", "level",   "finding", "api",  "ptr",
        "size", "region", "name",   "device", "context", "message", "hint",    "site", "detail"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(line, keys[i]);
        json_tree_set(object, keys[i], value != NULL ? json_incref(value) : json_null());
    }
}

static json_t *group_tree(const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = json_tree_object();
    copy_line(object, line->json);
    json_tree_set_number(object, "count", (int64_t)group->count);
    json_tree_set_string(object, "first", line->ts);
    json_tree_set_string(object, "last", group->last);
    json_tree_set(object, "processes", processes_tree(group));
    json_tree_set(object, "others", others_tree(&line->others));
    json_tree_set(object, "stack", report_stack_tree(&line->stack, symbols));
    json_tree_set(object, "prior", prior_tree(&line->prior, symbols));
    return object;
}

void report_json(FILE *out, const struct report *report) {
    json_t *array = json_tree_array();
    for (size_t i = 0; i < report->aggregate.count; i++)
        if (!report->aggregate.groups[i]->suppressed)
            json_tree_append(array, group_tree(report->aggregate.groups[i], report->symbols));
    json_tree_print(out, array);
}
