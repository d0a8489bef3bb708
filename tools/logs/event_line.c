/* event_line.c - reads one line of an event log from JSON into a struct. See logs.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/tool.h"
#include "logs.h"

/* In JSON this text can only be a key: in a string its quotation marks would be escaped. */
bool event_line_is(const char *text) {
    return strstr(text, "\"event\":");
}

static bool is_of_region(const char *event) {
    static const char *const events[] = {"created", "exported", "opened", "closed", "freed"};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i], event) == 0)
            return true;
    return false;
}

bool event_line_time(const char *ts, int64_t *time) {
    struct tm date = {.tm_isdst = 0};
    int micros;
    if (!log_line_is_time(ts) ||
        sscanf(ts, "%4d-%2d-%2dT%2d:%2d:%2d.%6d", &date.tm_year, &date.tm_mon, &date.tm_mday,
               &date.tm_hour, &date.tm_min, &date.tm_sec, &micros) != 7)
        return false;
    date.tm_year -= 1900;
    date.tm_mon--;
    *time = (int64_t)timegm(&date) * 1000000 + micros;
    return true;
}

/* Gets the time, and says what the event lacks without which it has no meaning; NULL: nothing. */
static const char *missing(struct event_line *line) {
    if (!event_line_time(line->ts, &line->time))
        return "no line of a gpushare event log, for it has no ts with a time; skipped";
    if (line->process.pid <= 0 || !line->image)
        return "no line of a gpushare event log, for it has no pid and process; skipped";
    if (is_of_region(line->event) && !line->region)
        return "an event of a region without a region; skipped";
    if (strcmp(line->event, "finding") == 0 && !line->finding)
        return "a finding without its id; skipped";
    return line->size < 0 || line->saved < 0 || line->ns < 0 ? "a negative number; skipped" : NULL;
}

static const char *unpack(struct event_line *line) {
    struct log_process *process = &line->process;
    if (json_unpack(line->json,
                    "{s:s, s:s, s?I, s?I, s?s, s?s, s?s, s?s, s?s, s?I, s?I, s?I, s?s, s?s, "
                    "s?s, s?s, s?s, s?s}",
                    "ts", &line->ts, "event", &line->event, "pid", &process->pid, "pid_ns",
                    &process->pid_ns, "process", &line->image, "command", &process->command,
                    "region", &line->region, "name", &line->name, "how", &line->how, "size",
                    &line->size, "saved", &line->saved, "ns", &line->ns, "finding", &line->finding,
                    "level", &line->level, "api", &line->api, "detail", &line->detail, "arguments",
                    &process->arguments, "device", &line->device) != 0)
        return "no line of a gpushare event log: a member is missing or of another kind; skipped";
    return missing(line);
}

struct event_line *event_line_parse(const char *text, size_t length, const char **wrong) {
    struct event_line *line = tool_zeroed(1, sizeof(*line));
    line->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    *wrong = line->json ? unpack(line) : "not JSON; skipped";
    if (!*wrong)
        return line;
    event_line_free(line);
    return NULL;
}

void event_line_free(struct event_line *line) {
    json_decref(line->json);
    free(line);
}
