/* event_stream.c - `gpushare events`: prints all processes' events, one line each, as they come. */
#include <time.h>

#include "cli/tool.h"
#include "config/config.h"
#include "logs/follow.h"
#include "logs/logs.h"
#include "util/clock.h"

#define PAUSE_NS 200000000

enum { OPTION_FOLLOW, OPTION_SINCE };

struct event_text {
    int64_t time; /* microseconds since 1970 */
    size_t order; /* in which it was read */
    char *text;
};

/* The events that were read and are not printed yet. */
struct events {
    int64_t since;
    struct event_text *texts;
    size_t count;
};

static int event_text_by_time(const void *left, const void *right) {
    const struct event_text *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time) ?: tool_compare(a->order, b->order);
}

/* A log of findings may be in the same directory. */
static void events_add(void *arg, const char *text, size_t length) {
    struct events *events = arg;
    const char *wrong = NULL;
    struct event_line *line = event_line_is(text) ? event_line_parse(text, length, &wrong) : NULL;
    if (!line)
        return;
    const struct event_text event = {line->time, events->count, NULL};
    if (line->time >= events->since) {
        TOOL_APPEND(events->texts, events->count, event);
        events->texts[event.order].text = tool_copy(text);
    }
    event_line_free(line);
}

/* False: there is no reader any more. */
static bool events_print(struct events *events) {
    TOOL_SORT(events->texts, events->count, event_text_by_time);
    for (size_t i = 0; i < events->count; i++) {
        puts(events->texts[i].text);
        free(events->texts[i].text);
    }
    free(events->texts);
    events->texts = NULL;
    events->count = 0;
    return fflush(stdout) == 0;
}

/* False: the place of the event logs is not known. */
static bool events_begin(struct follow *logs, const struct tool_args *args) {
    struct gps_config config;
    *logs = (struct follow){.paths = args->operands, .path_count = (size_t)args->operand_count};
    if (args->operand_count > 0)
        return true;
    if (gps_config_load(&config, tool_error_in, NULL) != 0)
        return false;
    if (strcmp(config.options.event_log, "off") != 0)
        logs->configured = follow_glob(config.options.event_log);
    else
        tool_error("no program writes events here: set event_log in the configuration, or "
                   "GPUSHARE_EVENT_LOG, as for the programs, or name the LOG");
    gps_config_free(&config);
    return logs->configured;
}

static bool events_parse_since(const char *text, int64_t *since) {
    uint64_t ago;
    *since = 0;
    if (!text)
        return true;
    if (!gps_parse_duration(text, &ago))
        return tool_error("--since '%s' is no time; allowed: 0, 30s, 2min, 1h", text);
    *since = (int64_t)gps_clock_now() / 1000 - (int64_t)(ago / 1000);
    return true;
}

static int run_events(const struct tool_args *args) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct events events = {.count = 0};
    struct follow logs;
    if (!events_parse_since(args->values[OPTION_SINCE], &events.since))
        return TOOL_USAGE;
    if (!events_begin(&logs, args))
        return TOOL_FAILED;
    bool good = follow_read(&logs, events_add, &events);
    while (events_print(&events) && good && args->values[OPTION_FOLLOW]) {
        nanosleep(&pause, NULL);
        good = follow_read(&logs, events_add, &events);
    }
    follow_end(&logs);
    return good ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_events = {
    .name = "events",
    .operands = "[LOG...]",
    .summary = "print the events of all processes, one JSON object a line",
    .details = "LOG is a file that gpushare wrote with event_log = FILE, or a directory of *.jsonl "
               "files. Without one the logs are read that event_log names in the configuration, "
               "whatever stands for %p and %c. Events are in the order of their times, and other "
               "lines are left out.\n\n"
               "--follow goes on until it is ended, and prints what is written meanwhile, of "
               "processes that start later, too; --since=0 leaves out what was there before.\n",
    .options = {{"follow", 'f', NULL, "go on with what is written from now on"},
                {"since", 0, "TIME", "only events of the last 30s, 2min or 1h"}},
    .operands_max = 1 << 20,
    .run = run_events,
};
