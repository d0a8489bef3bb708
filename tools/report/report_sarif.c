/*
 * report_sarif.c - a story as SARIF 2.1.0, for code-scanning services and editors.
 *
 * A result stands where the user can change something: at the innermost place whose source is
 * known. tests/tool/sarif.schema.json has the part of the standard that is used.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "log/log.h"
#include "report.h"
#include "sarif_place.h"
#include "symbols/user_frame.h"

static const char *const levels[] = {"note", "warning", "error"};

static json_t *message(const char *text) {
    json_t *object = json_tree_object();
    json_tree_set_string(object, "text", text);
    return object;
}

/* --- the catalogue --- */

static json_t *rule(enum gps_finding finding) {
    json_t *object = json_tree_object(), *configuration = json_tree_object();
    json_tree_set_string(object, "id", gps_finding_id(finding));
    json_tree_set(object, "shortDescription", message(gps_finding_sentence(finding)));
    json_tree_set(object, "help", message(gps_finding_hint(finding)));
    json_tree_set_string(configuration, "level", levels[gps_finding_level(finding)]);
    json_tree_set(object, "defaultConfiguration", configuration);
    return object;
}

static json_t *tool_tree(void) {
    json_t *tool = json_tree_object(), *driver = json_tree_object(), *rules = json_tree_array();
    for (int i = 0; i < GPS_FINDING_COUNT; i++)
        json_tree_append(rules, rule((enum gps_finding)i));
    json_tree_set_string(driver, "name", "gpushare");
    json_tree_set_string(driver, "version", GPS_VERSION);
    json_tree_set(driver, "rules", rules);
    json_tree_set(tool, "driver", driver);
    return tool;
}

/* A finding of a newer library is in no catalogue, and has no index. */
static void set_rule(json_t *result, const char *finding) {
    json_tree_set_string(result, "ruleId", finding);
    for (int i = 0; i < GPS_FINDING_COUNT; i++)
        if (strcmp(gps_finding_id((enum gps_finding)i), finding) == 0)
            json_tree_set_number(result, "ruleIndex", i);
}

/* --- a result --- */

static json_t *result_message(const struct log_line *line) {
    const char *what = line->message != NULL ? line->message : line->finding;
    char *text = line->detail != NULL ? tool_format("%s: %s", what, line->detail) : tool_copy(what);
    json_t *object = message(text);
    free(text);
    return object;
}

static json_t *fingerprints(const struct log_line *line, struct symbols *symbols) {
    json_t *object = json_tree_object();
    char hash[24];
    snprintf(hash, sizeof(hash), "%016" PRIx64, user_frame_hash(line, symbols));
    json_tree_set_string(object, "gpushareStack/v1", hash);
    return object;
}

static json_t *locations(const struct log_line *line, struct symbols *symbols) {
    json_t *array = json_tree_array();
    json_tree_append(array, sarif_location(line, symbols));
    return array;
}

/* The standard wants no two that are equal, as of two events at one place. */
static void append_new(json_t *array, json_t *value) {
    for (size_t i = 0; i < json_array_size(array); i++)
        if (json_equal(json_array_get(array, i), value)) {
            json_decref(value);
            return;
        }
    json_tree_append(array, value);
}

static void add_stack(json_t *stacks, const struct log_stack *stack, const char *text,
                      struct symbols *symbols) {
    if (stack->count == 0)
        return;
    json_t *object = json_tree_object();
    json_tree_set(object, "message", message(text));
    json_tree_set(object, "frames", sarif_frames(stack, symbols));
    append_new(stacks, object);
}

static json_t *stacks_tree(const struct log_line *line, struct symbols *symbols) {
    json_t *stacks = json_tree_array();
    add_stack(stacks, &line->stack, line->api != NULL ? line->api : "reported", symbols);
    for (size_t i = 0; i < line->prior.count; i++) {
        const struct log_event *event = &line->prior.events[i];
        char *text = tool_format(
            "%s by %s (pid %" PRId64 ")", event->what != NULL ? event->what : "before",
            event->process.command != NULL ? event->process.command : "?", event->process.pid);
        add_stack(stacks, &event->stack, text, symbols);
        free(text);
    }
    return stacks;
}

static json_t *properties(const struct aggregate_group *group) {
    static const char *const keys[] = {"api",  "command", "pid",  "pid_ns", "ptr",
                                       "size", "region",  "name", "device", "hint"};
    json_t *object = json_tree_object();
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(group->first->json, keys[i]);
        if (value && !json_is_null(value))
            json_tree_set(object, keys[i], json_incref(value));
    }
    json_tree_set_number(object, "processes", (int64_t)group->process_count);
    json_tree_set_string(object, "first", group->first->ts);
    json_tree_set_string(object, "last", group->last);
    return object;
}

/* The standard wants the key in all results or in none: an empty one says that it is not. */
static json_t *suppressions(const struct aggregate_group *group) {
    json_t *array = json_tree_array(), *object;
    if (!group->suppressed)
        return array;
    object = json_tree_object();
    json_tree_set_string(object, "kind", "external");
    json_tree_append(array, object);
    return array;
}

static json_t *result(const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = json_tree_object();
    set_rule(object, line->finding);
    json_tree_set_string(object, "level", levels[line->level]);
    json_tree_set(object, "message", result_message(line));
    json_tree_set(object, "locations", locations(line, symbols));
    json_tree_set(object, "stacks", stacks_tree(line, symbols));
    json_tree_set_number(object, "occurrenceCount", (int64_t)group->count);
    json_tree_set(object, "partialFingerprints", fingerprints(line, symbols));
    json_tree_set(object, "suppressions", suppressions(group));
    json_tree_set(object, "properties", properties(group));
    return object;
}

void report_sarif(FILE *out, const struct report *report) {
    json_t *log = json_tree_object(), *runs = json_tree_array(), *run = json_tree_object(),
           *results = json_tree_array();
    for (size_t i = 0; i < report->aggregate.count; i++)
        json_tree_append(results, result(report->aggregate.groups[i], report->symbols));
    json_tree_set(run, "tool", tool_tree());
    json_tree_set(run, "results", results);
    json_tree_append(runs, run);
    json_tree_set_string(log, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_tree_set_string(log, "version", "2.1.0");
    json_tree_set(log, "runs", runs);
    json_tree_print(out, log);
}
