/*
 * log_line.c - reads one line of a log from JSON into a struct.
 *
 * A line that has all members in the order in which the library writes them, and no text that needs
 * an escape, is read as it stands, and its strings stay in place. Making a tree of JSON takes ten
 * times as long. That is done for lines of other versions, and for callers who want the tree.
 */
#include <ctype.h>

#include "cli/tool.h"
#include "log/log.h"
#include "logs.h"

#define LINE                                                                                       \
    "{\"ts\":$,\"pid\":#,\"pid_ns\":#,\"tid\":#,\"command\":$,\"arguments\":$,\"rank\":#,"         \
    "\"level\":$,\"finding\":$,"                                                                   \
    "\"api\":$,\"ptr\":$,\"size\":#,\"region\":$,\"name\":$,\"device\":#,\"context\":$,"           \
    "\"message\":$,\"hint\":$,\"count\":#,\"site\":$,\"stack\":["
#define FRAME   "{\"module\":$,\"offset\":$,\"build_id\":$"
#define PYTHON  ",\"file\":$,\"line\":#,\"function\":$"
#define PROCESS "{\"pid\":#,\"pid_ns\":#,\"command\":$"

/* What is read: a text from `at` on, which moves; `at` NULL: a tree. */
struct source {
    char **at;
    const json_t *tree;
};

/* --- members: one that is not known stays as it was --- */

static bool take_null(struct source from) {
    const bool null = strncmp(*from.at, "null", 4) == 0;
    *from.at += null ? 4 : 0;
    return null;
}

/* In a text, the string ends where its closing quotation mark was. */
static bool take_string(struct source from, const char *name, const char **string) {
    const json_t *value = json_object_get(from.tree, name);
    if (json_is_string(value))
        *string = json_string_value(value);
    if (!from.at || take_null(from))
        return true;
    if (*(*from.at)++ != '"')
        return false;
    *string = *from.at;
    while (**from.at >= ' ' && **from.at < 0x7f && **from.at != '"' && **from.at != '\\')
        ++*from.at;
    const bool whole = **from.at == '"';
    *(*from.at)++ = 0;
    return whole;
}

/* In a text, the number has at most 18 digits, so it fits. */
static bool source_take_number(struct source from, const char *name, int64_t *number) {
    const json_t *value = json_object_get(from.tree, name);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        *number = json_integer_value(value);
    if (!from.at || take_null(from))
        return true;
    const char *start = *from.at;
    for (*number = 0; isdigit((unsigned char)**from.at) && *from.at < start + 18; ++*from.at)
        *number = 10 * *number + (**from.at - '0');
    return *from.at == start + 1 || (*from.at > start && *start != '0');
}

/* Reads members as the form has them: $ is a string, # a number, either of which may be null.
 * False: the text goes on in another way. */
static bool source_take_members(struct source from, const char *form, ...) {
    char name[16] = "";
    bool good = true;
    va_list places;
    va_start(places, form);
    for (; good && *form != 0; form++)
        if (*form == '$')
            good = take_string(from, name, va_arg(places, const char **));
        else if (*form == '#')
            good = source_take_number(from, name, va_arg(places, int64_t *));
        else if (from.at)
            good = *(*from.at)++ == *form;
        else if (sscanf(form, "\"%15[^\"]", name) == 1)
            form = strchr(form + 1, '"');
    va_end(places);
    return good;
}

/* --- lists, which begin behind what the form says --- */

/* Goes to the element number `i`. False: there is none. */
static bool next_element(struct source list, size_t i, struct source *element) {
    *element = (struct source){list.at, json_array_get(list.tree, i)};
    if (!list.at)
        return element->tree;
    const bool more = **list.at == (i == 0 ? '{' : ',');
    *list.at += more && i > 0;
    return more;
}

static bool take_frame(struct source from, struct log_frame *frame) {
    const char *offset = "0";
    if (!source_take_members(from, FRAME, &frame->module, &offset, &frame->build_id))
        return false;
    frame->offset = strtoull(offset, NULL, 16);
    if ((!from.at || **from.at == ',') &&
        !source_take_members(from, PYTHON, &frame->file, &frame->line, &frame->function))
        return false;
    return source_take_members(from, "}");
}

static bool take_stack(struct source from, struct log_stack *stack) {
    struct source list = {from.at, json_object_get(from.tree, "stack")}, element;
    bool good = true;
    while (good && next_element(list, stack->count, &element)) {
        struct log_frame frame = {.module = NULL};
        good = take_frame(element, &frame);
        TOOL_APPEND(stack->frames, stack->count, frame);
    }
    return good && source_take_members(from, "]");
}

static bool take_event(struct source from, struct log_event *event, bool prior) {
    struct log_process *process = &event->process;
    if (!source_take_members(from, PROCESS, &process->pid, &process->pid_ns, &process->command))
        return false;
    if (!prior)
        return source_take_members(from, ",\"since\":$}", &event->ts);
    return source_take_members(from, ",\"what\":$,\"ts\":$,\"stack\":[", &event->what,
                               &event->ts) &&
           take_stack(from, &event->stack) && source_take_members(from, "}");
}

static bool take_events(struct source from, const char *name, struct log_events *events) {
    struct source list = {from.at, json_object_get(from.tree, name)}, element;
    bool good = true;
    while (good && next_element(list, events->count, &element)) {
        TOOL_APPEND(events->events, events->count, (struct log_event){.process.rank = -1});
        good = take_event(element, &events->events[events->count - 1], name[0] == 'p');
    }
    return good && source_take_members(from, "]");
}

/* --- a line --- */

static bool source_take_line(struct source from, struct log_line *line) {
    struct log_process *process = &line->process;
    const char *level = NULL;
    int64_t tid;
    const bool good =
        source_take_members(from, LINE, &line->ts, &process->pid, &process->pid_ns, &tid,
                            &process->command, &process->arguments, &process->rank, &level,
                            &line->finding, &line->api, &line->ptr, &line->size, &line->region,
                            &line->name, &line->device, &line->context, &line->message, &line->hint,
                            &line->count, &line->site) &&
        take_stack(from, &line->stack) && source_take_members(from, ",\"prior\":[") &&
        take_events(from, "prior", &line->prior) &&
        source_take_members(from, ",\"detail\":$,\"others\":[", &line->detail) &&
        take_events(from, "others", &line->others) && source_take_members(from, "}");
    log_line_level(level, &line->level);
    if (from.tree && json_object_get(from.tree, "event"))
        line->finding = NULL; /* it is a line of an event log, which only mentions findings */
    return good;
}

/* Why it is no line of a log, or NULL: every line has these members. */
static const char *foreign(const struct log_line *line, const json_t *tree) {
    if (tree && !json_is_object(tree))
        return "JSON, but not an object, and so no line of a gpushare log; skipped";
    if (!log_line_is_time(line->ts))
        return "no line of a gpushare log, for it has no ts with a time; skipped";
    if (line->process.pid == 0)
        return "no line of a gpushare log, for it has no pid; skipped";
    if (tree && !json_object_get(tree, "finding") && !json_object_get(tree, "event"))
        return "no line of a gpushare log, for it has no finding; skipped";
    return NULL;
}

struct log_line *log_line_parse(const char *text, size_t length, bool tree, const char **wrong) {
    struct log_line *line = tool_zeroed(1, sizeof(*line));
    char *at = line->text = tree ? NULL : tool_copy(text);
    if (tree && strlen(text) == length) /* jansson overlooks a NUL behind a number */
        line->json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    line->level =
        GPS_LEVEL_ERROR; /* not the level of the catalogue, which may be older than the line */
    line->device = line->process.rank = -1;
    const struct source from = {tree ? NULL : &at, line->json};
    const bool whole = source_take_line(from, line) && (tree || at == line->text + length);
    *wrong = tree && !line->json ? "not JSON; skipped" : foreign(line, line->json);
    if (whole && !*wrong)
        return line;
    log_line_free(line);
    return tree ? NULL : log_line_parse(text, length, true, wrong);
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
    free(line->text);
    free(line);
}

const char *log_frame_module(const struct log_frame *frame) {
    const char *path = frame->function ? frame->file : frame->module;
    return path ? basename(path) : NULL;
}

/* --- levels and times --- */

bool log_line_level(const char *name, enum gps_level *level) {
    for (int i = GPS_LEVEL_INFO; name && i <= GPS_LEVEL_ERROR; i++)
        if (strcmp(name, gps_level_name((enum gps_level)i)) == 0) {
            *level = (enum gps_level)i;
            return true;
        }
    return false;
}

bool log_line_is_time(const char *text) {
    static const char form[] = "0000-00-00T00:00:00.000000Z";
    if (!text || strlen(text) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; form[i] != 0; i++)
        if (form[i] == '0' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    return true;
}
