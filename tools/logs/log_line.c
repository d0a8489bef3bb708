/*
 * log_line.c - one line of a log: from JSON into a struct that borrows its strings.
 */
#include "logs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "log/log.h"

static const char *string_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* 0 where it is no number, or a negative one. */
static int64_t number_of(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

static struct log_process process_of(const json_t *object) {
    return (struct log_process){.pid = number_of(object, "pid"),
                                .pid_ns = number_of(object, "pid_ns"),
                                .command = string_of(object, "command")};
}

static uint64_t offset_of(const json_t *frame) {
    const char *text = string_of(frame, "offset");
    return text ? strtoull(text, NULL, 16) : 0;
}

static struct log_stack stack_of(const json_t *object) {
    const json_t *frames = json_object_get(object, "stack");
    struct log_stack stack = {NULL, json_array_size(frames)};
    if (stack.count > 0)
        stack.frames = tool_resize(NULL, stack.count, sizeof(*stack.frames));
    for (size_t i = 0; i < stack.count; i++) {
        const json_t *frame = json_array_get(frames, i);
        stack.frames[i] = (struct log_frame){.module = string_of(frame, "module"),
                                             .offset = offset_of(frame),
                                             .build_id = string_of(frame, "build_id")};
    }
    return stack;
}

/* `time`: the key of the event's time. */
static struct log_events events_of(const json_t *object, const char *key, const char *time) {
    const json_t *array = json_object_get(object, key);
    struct log_events list = {NULL, json_array_size(array)};
    if (list.count > 0)
        list.events = tool_resize(NULL, list.count, sizeof(*list.events));
    for (size_t i = 0; i < list.count; i++) {
        const json_t *event = json_array_get(array, i);
        list.events[i] = (struct log_event){.what = string_of(event, "what"),
                                            .process = process_of(event),
                                            .ts = string_of(event, time),
                                            .stack = stack_of(event)};
    }
    return list;
}

bool log_line_level(const char *name, enum gps_level *level) {
    for (int i = GPS_LEVEL_INFO; i <= GPS_LEVEL_ERROR; i++)
        if (strcmp(name, gps_level_name((enum gps_level)i)) == 0) {
            *level = (enum gps_level)i;
            return true;
        }
    return false;
}

/* Not the catalogue's level: the line may be of a newer version. */
static enum gps_level level_of(const json_t *json) {
    const char *name = string_of(json, "level");
    enum gps_level level;
    return name && log_line_level(name, &level) ? level : GPS_LEVEL_ERROR;
}

/* "2026-11-21T02:34:05.123456Z": in this form times sort as text. */
static bool is_time(const char *text) {
    static const char form[] = "0000-00-00T00:00:00.000000Z";
    if (strlen(text) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; form[i] != 0; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    return true;
}

/* Why the JSON is no line of a log, or NULL: every line has these members. */
static const char *foreign(const json_t *json) {
    const char *ts = string_of(json, "ts");
    if (!json_is_object(json))
        return "JSON, but not an object, and so no line of a gpushare log; skipped";
    if (!ts || !is_time(ts))
        return "no line of a gpushare log, for it has no ts with a time; skipped";
    if (number_of(json, "pid") == 0)
        return "no line of a gpushare log, for it has no pid; skipped";
    if (!json_object_get(json, "finding"))
        return "no line of a gpushare log, for it has no finding; skipped";
    return NULL;
}

static void fill(struct log_line *line, json_t *json) {
    const json_t *device = json_object_get(json, "device");
    *line = (struct log_line){.json = json,
                              .ts = string_of(json, "ts"),
                              .process = process_of(json),
                              .level = level_of(json),
                              .finding = string_of(json, "finding"),
                              .api = string_of(json, "api"),
                              .ptr = string_of(json, "ptr"),
                              .context = string_of(json, "context"),
                              .region = string_of(json, "region"),
                              .name = string_of(json, "name"),
                              .message = string_of(json, "message"),
                              .hint = string_of(json, "hint"),
                              .site = string_of(json, "site"),
                              .detail = string_of(json, "detail"),
                              .size = number_of(json, "size"),
                              .device = json_is_integer(device) ? json_integer_value(device) : -1,
                              .count = number_of(json, "count"),
                              .stack = stack_of(json),
                              .prior = events_of(json, "prior", "ts"),
                              .others = events_of(json, "others", "since")};
}

struct log_line *log_line_parse(const char *bytes, size_t count, const char **wrong) {
    json_error_t error;
    json_t *json = json_loadb(bytes, count, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    *wrong = json ? foreign(json) : "not JSON; skipped";
    if (*wrong) {
        json_decref(json);
        return NULL;
    }
    struct log_line *line = tool_resize(NULL, 1, sizeof(*line));
    fill(line, json);
    return line;
}

static void free_events(struct log_events *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->events[i].stack.frames);
    free(list->events);
}

void log_line_free(struct log_line *line) {
    free(line->stack.frames);
    free_events(&line->prior);
    free_events(&line->others);
    json_decref(line->json);
    free(line);
}
