/* history.c - see history.h. */
#include "history.h"

#include <stdlib.h>

#include "cli/tool.h"
#include "history_play.h"

/* --- findings of logs --- */

/* A process of a log, among those of the event logs. */
static size_t process_at(struct history *history, const struct log_process *facts, int64_t time) {
    for (size_t i = history->process_count; i-- > 0;) {
        const struct history_process *process = &history->processes[i];
        if (process->facts.pid == facts->pid && process->facts.pid_ns == facts->pid_ns &&
            process->first <= time)
            return i;
    }
    return history_add_process(history, facts, time);
}

static void mark_report(struct history *history, const struct log_line *line) {
    size_t *number = history_mark_at(history, line->ts, &line->process, line->finding);
    int64_t time;
    if (*number == 0 && event_line_time(line->ts, &time)) {
        const struct history_mark mark = {.process = process_at(history, &line->process, time),
                                          .time = time,
                                          .finding = line->finding,
                                          .api = line->api,
                                          .detail = line->detail,
                                          .level = line->level};
        history_add_mark(history, mark, line->region);
        *number = history->mark_count;
    }
    if (*number != 0)
        history->marks[*number - 1].group = aggregate_group_of(&history->aggregate, line);
}

/* --- reading --- */

static const char *add_event(struct history_play *play, const char *text, size_t length) {
    const char *wrong;
    struct event_line *line = event_line_parse(text, length, &wrong);
    if (!line)
        return wrong;
    play->lines = tool_grow(play->lines, play->line_count, sizeof(*play->lines));
    play->lines[play->line_count++] = line;
    return NULL;
}

/* Lines at the end of a process that only count repeats have no time of their own. */
static void keep_report(struct history_play *play, const char *text, size_t length) {
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (line && line->finding && line->count <= 1) {
        play->reports = tool_grow(play->reports, play->report_count, sizeof(*play->reports));
        play->reports[play->report_count++] = line;
    } else if (line) {
        log_line_free(line);
    }
}

const char *history_add(void *arg, const char *text, size_t length) {
    struct history *history = arg;
    struct history_play *play = history->play;
    if (event_line_is(text))
        return add_event(play, text, length);
    const char *wrong = aggregate_add(&history->aggregate, text, length);
    if (!wrong)
        keep_report(play, text, length);
    return wrong;
}

void history_begin(struct history *history) {
    *history = (struct history){.play = tool_zeroed(1, sizeof(*history->play))};
    aggregate_begin(&history->aggregate, GPS_LEVEL_INFO);
}

/* --- the end --- */

/* Of one time in the order in which they were read. */
static int by_time(const void *left, const void *right) {
    const struct event_line *a = *(struct event_line *const *)left,
                            *b = *(struct event_line *const *)right;
    return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
                              : (a->order > b->order) - (a->order < b->order);
}

/* No memory goes while a process has it open; but a stale handle is opened in vain. Of memory that
 * was freed late, those who never closed it have ended. */
static void clamp(struct history_hold *hold, struct history_lifetime *lifetime) {
    if (lifetime->gone == HISTORY_OPEN || hold->from >= lifetime->gone)
        return;
    if (hold->to == HISTORY_OPEN && lifetime->late)
        hold->to = lifetime->gone;
    if (hold->to != HISTORY_OPEN && hold->to > lifetime->gone)
        lifetime->gone = hold->to;
}

static void bound(struct history *history) {
    bool any = false;
    for (size_t i = 0; i < history->process_count; i++) {
        const struct history_process *process = &history->processes[i];
        history->begin = any && history->begin < process->first ? history->begin : process->first;
        history->end = any && history->end > process->last ? history->end : process->last;
        any = true;
    }
    for (size_t i = 0; i < history->wait_count; i++)
        if (history->waits[i].from < history->begin)
            history->begin = history->waits[i].from;
}

void history_end(struct history *history) {
    struct history_play *play = history->play;
    aggregate_end(&history->aggregate);
    history->event_count = play->line_count;
    for (size_t i = 0; i < play->line_count; i++)
        play->lines[i]->order = i;
    if (play->line_count > 0)
        qsort(play->lines, play->line_count, sizeof(*play->lines), by_time);
    for (size_t i = 0; i < play->line_count; i++)
        history_follow(history, play->lines[i]);
    for (size_t i = 0; i < play->report_count; i++)
        mark_report(history, play->reports[i]);
    for (size_t i = 0; i < history->hold_count; i++)
        clamp(&history->holds[i], &history->lifetimes[history->holds[i].lifetime]);
    bound(history);
    history_sum_up(history, play->merges, play->merge_count);
}

static void free_play(struct history_play *play) {
    for (size_t i = 0; i < play->line_count; i++)
        event_line_free(play->lines[i]);
    for (size_t i = 0; i < play->report_count; i++)
        log_line_free(play->reports[i]);
    free(play->lines);
    free(play->reports);
    free(play->merges);
    string_map_free(&play->processes, NULL);
    string_map_free(&play->ids, NULL);
    string_map_free(&play->names, NULL);
    string_map_free(&play->open, NULL);
    string_map_free(&play->findings, NULL);
}

void history_free(struct history *history) {
    free_play(history->play);
    free(history->play);
    free(history->processes);
    free(history->regions);
    free(history->lifetimes);
    free(history->holds);
    free(history->marks);
    free(history->waits);
    free(history->steps);
    aggregate_free(&history->aggregate);
}
