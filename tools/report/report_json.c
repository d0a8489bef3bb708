/* report_json.c - a report as JSON: the first line of each finding, and the facts of its group. */

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "report.h"

/* --- frames --- */

static json_t *number_or_null(int64_t number) {
    return number > 0 ? json_integer(number) : json_null();
}

static void report_json_add_place(json_t *object, const struct symbol_place *place) {
    TOOL_TEMP char *path = symbol_path(place);
    json_tree_add(object, "{s:o, s:o, s:o}", "function", json_tree_string(place->function), "file",
                  json_tree_string(path), "line", number_or_null(place->line));
}

static json_t *report_frame_json(const struct log_frame *frame, struct symbols *symbols) {
    const struct symbol *symbol = symbol_find(symbols, frame);
    json_t *inlined = json_tree_pack("[]");
    for (size_t i = 0; i + 1 < symbol->count; i++) {
        json_t *call = json_tree_pack("{}");
        report_json_add_place(call, &symbol->places[i]);
        json_tree_append(inlined, call);
    }
    json_t *object = json_tree_pack("{s:s?, s:o, s:s?}", "module", frame->module, "offset",
                                    json_tree_hex(frame->offset), "build_id", frame->build_id);
    report_json_add_place(object, &symbol->places[symbol->count - 1]);
    json_tree_add(object, "{s:o, s:s?}", "inlined", inlined, "note", symbol->note);
    return object;
}

static json_t *stack_json(const struct log_stack *stack, struct symbols *symbols) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < stack->count; i++)
        json_tree_append(array, report_frame_json(&stack->frames[i], symbols));
    return array;
}

/* --- processes and events --- */

static json_t *report_process_json(const struct log_process *process) {
    return json_tree_pack("{s:I, s:o, s:s?}", "pid", process->pid, "pid_ns",
                          number_or_null(process->pid_ns), "command", process->command);
}

static json_t *prior_json(const struct log_events *prior, struct symbols *symbols) {
    json_t *array = json_tree_pack("[]");
    TOOL_EACH(const struct log_event, event, prior->events, prior->count) {
        json_t *object = report_process_json(&event->process);
        json_tree_add(object, "{s:s?, s:s?, s:o}", "what", event->what, "ts", event->ts, "stack",
                      stack_json(&event->stack, symbols));
        json_tree_append(array, object);
    }
    return array;
}

static json_t *others_json(const struct log_events *others) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < others->count; i++) {
        json_t *object = report_process_json(&others->events[i].process);
        json_tree_add(object, "{s:s?}", "since", others->events[i].ts);
        json_tree_append(array, object);
    }
    return array;
}

static json_t *processes_json(const struct aggregate_group *group) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < group->process_count; i++) {
        const struct log_process *process = &group->processes[i]->facts;
        json_t *object = report_process_json(process);
        json_tree_add(object, "{s:s?, s:o}", "arguments", process->arguments, "rank",
                      process->rank < 0 ? json_null() : json_tree_pack("I", process->rank));
        json_tree_append(array, object);
    }
    return array;
}

/* --- findings --- */

/* Copies these members; one that an older library does not write is null. */
static void copy_line(json_t *object, const json_t *line) {
    static const char *const keys[] = {"ts",        "pid",     "pid_ns", "tid",     "command",
                                       "arguments", "rank",    "level",  "finding", "api",
                                       "ptr",       "size",    "region", "name",    "device",
                                       "context",   "message", "hint",   "site",    "detail"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        json_tree_add(object, "{s:O?}", keys[i], json_object_get(line, keys[i]));
}

static json_t *group_json(const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = json_tree_pack("{}");
    copy_line(object, line->json);
    json_tree_add(object, "{s:I, s:s, s:s, s:o, s:o, s:o, s:o}", "count", group->count, "first",
                  line->ts, "last", group->last, "processes", processes_json(group), "others",
                  others_json(&line->others), "stack", stack_json(&line->stack, symbols), "prior",
                  prior_json(&line->prior, symbols));
    return object;
}

void report_json(FILE *out, const struct report *report) {
    size_t printed = 0;
    for (size_t i = 0; i < report->aggregate.count; i++) {
        const struct aggregate_group *group = report->aggregate.groups[i];
        if (!group->suppressed)
            json_tree_print_element(out, printed++, group_json(group, report->symbols));
    }
    fputs(printed == 0 ? "[]\n" : "\n]\n", out);
}
