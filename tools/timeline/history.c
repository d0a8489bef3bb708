#include "history.h"

#include "cli/string_map.h"
#include "cli/tool.h"

/* --- the state of a history while it is played --- */

/* A line of a log that is a finding. */
struct report_line {
    struct log_line *line;
    const struct aggregate_group *group;
};

/* What an id of a region stands for now: indices plus 1; 0 is none. */
struct entry {
    size_t region, lifetime;
};

/* The maps have indices plus 1, too. */
struct history_play {
    struct event_line **lines;
    size_t line_count;
    struct report_line *reports;
    size_t report_count;
    struct string_map *ids;       /* of regions: struct entry */
    struct string_map *names;     /* of regions */
    struct string_map *processes; /* by pid, namespace and image */
    struct string_map *open;      /* holds, by process and id */
    struct string_map *findings;  /* marks, by time, process and id */
    struct string_map *made;      /* bytes of cuMemCreate, by process and GPU */
    struct string_map *frames;    /* the last, by process, region and how */
    int64_t saved;                /* bytes of merged blocks that no process has left */
};

static size_t *history_number_at(struct string_map **map, char *key) {
    size_t *number = string_map_make(map, key, sizeof(*number));
    free(key);
    return number;
}

/* --- processes and regions --- */

static size_t history_add_process(struct history *history, const struct log_process *facts,
                                  int64_t time) {
    struct history_process process = {.facts = *facts, .first = time, .last = time};
    process.facts.command = tool_or(facts->command, "?");
    TOOL_APPEND(history->processes, history->process_count, process);
    return history->process_count;
}

static size_t history_process_of(struct history *history, const struct event_line *line) {
    size_t *number = history_number_at(&history->play->processes,
                                       tool_format("%" PRId64 " %" PRId64 " %s", line->process.pid,
                                                   line->process.pid_ns, line->image));
    if (*number == 0)
        *number = history_add_process(history, &line->process, line->time);
    history->processes[*number - 1].last = line->time;
    if (line->process.arguments)
        history->processes[*number - 1].facts.arguments = line->process.arguments;
    return *number - 1;
}

static size_t history_add_region(struct history *history, const char *name, const char *id) {
    TOOL_APPEND(history->regions, history->region_count, (struct history_region){name, id});
    return history->region_count;
}

/* The lane of a name. The first line with the name makes it. */
static size_t named(struct history *history, const char *name, const char *id) {
    size_t *number = history_number_at(&history->play->names, tool_copy(name));
    if (*number == 0)
        *number = history_add_region(history, name, id);
    return *number - 1;
}

static struct entry *entry_of(struct history *history, const struct event_line *line) {
    struct entry *entry = string_map_make(&history->play->ids, line->region, sizeof(struct entry));
    if (entry->region == 0)
        entry->region = line->name ? 1 + named(history, line->name, line->region)
                                   : history_add_region(history, NULL, line->region);
    return entry;
}

/* --- lifetimes and holds --- */

/* Notes what changes at a time, as a step that is relative to the one before. */
static void add_change(struct history *history, int64_t time, int64_t used, int64_t without) {
    if (time == HISTORY_OPEN)
        return;
    TOOL_APPEND(history->steps, history->step_count, (struct history_step){time, used, without});
}

static struct history_lifetime *add_lifetime(struct history *history, struct entry *entry,
                                             size_t owner, int64_t size) {
    TOOL_APPEND(history->lifetimes, history->lifetime_count,
                (struct history_lifetime){.region = entry->region - 1,
                                          .owner = owner,
                                          .size = size,
                                          .created = HISTORY_OPEN,
                                          .exported = HISTORY_OPEN,
                                          .freed = HISTORY_OPEN,
                                          .gone = HISTORY_OPEN});
    entry->lifetime = history->lifetime_count;
    return &history->lifetimes[entry->lifetime - 1];
}

static struct history_lifetime *lifetime_of(struct history *history, const struct entry *entry) {
    return entry->lifetime != 0 ? &history->lifetimes[entry->lifetime - 1] : NULL;
}

static void follow_created(struct history *history, const struct event_line *line, size_t process) {
    add_lifetime(history, entry_of(history, line), process, line->size)->created = line->time;
}

static void follow_exported(struct history *history, const struct event_line *line,
                            size_t process) {
    struct entry *entry = entry_of(history, line);
    struct history_lifetime *lifetime = lifetime_of(history, entry);
    const bool began = lifetime && lifetime->owner == process &&
                       lifetime->exported == HISTORY_OPEN && lifetime->gone == HISTORY_OPEN;
    if (!began)
        lifetime = add_lifetime(history, entry, process, line->size);
    lifetime->exported = line->time;
    lifetime->made = line->how && strcmp(line->how, "token") == 0;
}

static void follow_freed(struct history *history, const struct event_line *line, size_t process) {
    struct entry *entry = entry_of(history, line);
    struct history_lifetime *lifetime = lifetime_of(history, entry);
    const bool waits =
        line->how && (!strcmp(line->how, "deferred") || !strcmp(line->how, "handover"));
    if (!lifetime || (lifetime->owner != process && lifetime->owner != HISTORY_NONE))
        lifetime = add_lifetime(history, entry, process, line->size);
    lifetime->owner = process;
    if (lifetime->freed == HISTORY_OPEN) {
        lifetime->freed = line->time;
        lifetime->how = tool_or(line->how, "now");
    }
    if (!waits)
        lifetime->gone = line->time;
    lifetime->late |= line->how && strcmp(line->how, "late") == 0;
    lifetime->kept |= line->how && strcmp(line->how, "kept") == 0;
}

static size_t *open_hold(struct history *history, const struct event_line *line, size_t process) {
    return history_number_at(&history->play->open, tool_format("%zu %s", process, line->region));
}

static void follow_opened(struct history *history, const struct event_line *line, size_t process) {
    struct entry *entry = entry_of(history, line);
    size_t *hold = open_hold(history, line, process);
    if (entry->lifetime == 0) /* its exporter has no log */
        add_lifetime(history, entry, HISTORY_NONE, line->size);
    if (*hold != 0)
        return;
    TOOL_APPEND(history->holds, history->hold_count,
                (struct history_hold){entry->lifetime - 1, process, line->time, HISTORY_OPEN});
    *hold = history->hold_count;
}

static void follow_closed(struct history *history, const struct event_line *line, size_t process) {
    size_t *hold = open_hold(history, line, process);
    if (*hold != 0)
        history->holds[*hold - 1].to = line->time;
    *hold = 0;
}

/* --- waits, merged blocks, findings --- */

static void follow_waited(struct history *history, const struct event_line *line, size_t process) {
    const bool of_import = line->how && strcmp(line->how, "import") == 0;
    size_t region = HISTORY_NONE;
    if (line->region)
        region = entry_of(history, line)->region - 1;
    else if (line->name)
        region = named(history, line->name, NULL);
    TOOL_APPEND(history->waits, history->wait_count,
                (struct history_wait){process, region, line->time - line->ns / 1000, line->time,
                                      of_import ? HISTORY_WAIT_IMPORT : HISTORY_WAIT_FREE});
}

static void follow_suspended(struct history *history, const struct event_line *line,
                             size_t process) {
    TOOL_APPEND(
        history->waits, history->wait_count,
        (struct history_wait){process, HISTORY_NONE, line->time, HISTORY_OPEN, HISTORY_SUSPENDED});
}

static void follow_resumed(struct history *history, const struct event_line *line, size_t process) {
    for (size_t i = 0; i < history->wait_count; i++)
        if (history->waits[i].process == process && history->waits[i].to == HISTORY_OPEN)
            history->waits[i].to = line->time;
}

/* Times of lines are no exact ends. */
#define FRAMES_NEAR 1000

static void follow_frames(struct history *history, const struct event_line *line, size_t process) {
    struct history_frames frames = {.process = process,
                                    .region = entry_of(history, line)->region - 1,
                                    .from = line->time - line->ns / 1000,
                                    .to = line->time,
                                    .count = line->count,
                                    .left_out = line->left_out,
                                    .writes = line->how && strcmp(line->how, "writer") == 0};
    size_t *number = history_number_at(
        &history->play->frames, tool_format("%zu %zu %d", process, frames.region, frames.writes));
    struct history_frames *last = *number != 0 ? &history->frames[*number - 1] : NULL;
    if (last && frames.from < last->to + FRAMES_NEAR) {
        last->goes_on = true;
        frames.from = last->to;
    }
    TOOL_APPEND(history->frames, history->frames_count, frames);
    *number = history->frames_count;
}

/* The process has another number of merged bytes than before. */
static void note_merged(struct history *history, size_t index, int64_t time) {
    struct history_process *process = &history->processes[index];
    struct history_merge *last = process->merge > 0 ? &history->merges[process->merge - 1] : NULL;
    if (last)
        last->to = time;
    process->merge = 0;
    if (process->merged == 0)
        return;
    TOOL_APPEND(history->merges, history->merge_count,
                (struct history_merge){index, time, HISTORY_OPEN, process->merged});
    process->merge = history->merge_count;
}

static void follow_merged(struct history *history, const struct event_line *line, size_t process) {
    const int64_t saved = line->saved < line->size ? line->saved : line->size;
    history->processes[process].merged += line->size;
    history->play->saved += saved;
    add_change(history, line->time, line->size - saved, line->size);
    note_merged(history, process, line->time);
}

/* A log that begins late lacks merges, so more may leave than is known of. The last process to
 * leave a shared block ends it, but no log says which process is the last. So bytes that leave are
 * first taken from the saved ones. */
static void leave_merged(struct history *history, size_t index, int64_t time, int64_t size) {
    struct history_process *process = &history->processes[index];
    const int64_t gone = size < process->merged ? size : process->merged;
    const int64_t less = gone < history->play->saved ? gone : history->play->saved;
    process->merged -= gone;
    history->play->saved -= less;
    if (gone == 0)
        return;
    add_change(history, time, less - gone, -gone);
    note_merged(history, index, time);
}

static void follow_not_merging(struct history *history, const struct event_line *line,
                               size_t process) {
    leave_merged(history, process, line->time, line->size);
}

static void add_made(struct history *history, size_t index, int64_t time, int64_t more) {
    struct history_process *process = &history->processes[index];
    if (more == 0)
        return;
    process->made += more;
    process->most = process->made > process->most ? process->made : process->most;
    TOOL_APPEND(history->made, history->made_count,
                (struct history_made){index, time, process->made});
    add_change(history, time, more, more);
}

/* The line has all that there is of it on a GPU. */
static void follow_made(struct history *history, const struct event_line *line, size_t process) {
    size_t *bytes = history_number_at(&history->play->made,
                                      tool_format("%zu %s", process, tool_or(line->device, "")));
    const int64_t more = line->size - (int64_t)*bytes;
    *bytes = (size_t)line->size;
    add_made(history, process, line->time, more);
}

/* A process's holds end with it; its memory stays as long as other processes hold it. */
static void follow_ended(struct history *history, const struct event_line *line, size_t process) {
    history->processes[process].ended = true;
    follow_resumed(history, line, process);
    for (size_t i = 0; i < history->hold_count; i++)
        if (history->holds[i].process == process && history->holds[i].to == HISTORY_OPEN)
            history->holds[i].to = line->time;
    for (size_t i = 0; i < history->lifetime_count; i++)
        if (history->lifetimes[i].owner == process && history->lifetimes[i].gone == HISTORY_OPEN)
            history->lifetimes[i].gone = line->time;
    leave_merged(history, process, line->time, INT64_MAX);
    add_made(history, process, line->time, -history->processes[process].made);
}

static size_t *mark_at(struct history *history, const char *ts, const struct log_process *process,
                       const char *finding) {
    return history_number_at(
        &history->play->findings,
        tool_format("%s %" PRId64 " %" PRId64 " %s", ts, process->pid, process->pid_ns, finding));
}

static void add_mark(struct history *history, struct history_mark mark, const char *region) {
    const struct entry *entry = region ? string_map_get(history->play->ids, region) : NULL;
    mark.region = entry ? entry->region - 1 : HISTORY_NONE;
    TOOL_APPEND(history->marks, history->mark_count, mark);
}

static void follow_finding(struct history *history, const struct event_line *line, size_t process) {
    struct history_mark mark = {.process = process,
                                .time = line->time,
                                .finding = line->finding,
                                .api = line->api,
                                .detail = line->detail,
                                .level = GPS_LEVEL_ERROR};
    log_line_level(line->level, &mark.level);
    add_mark(history, mark, line->region);
    *mark_at(history, line->ts, &line->process, line->finding) = history->mark_count;
}

/* An event of a newer library, or one without a meaning here, changes nothing. */
static void history_follow(struct history *history, const struct event_line *line) {
    static const struct {
        const char *event;
        void (*follow)(struct history *, const struct event_line *, size_t process);
    } followers[] = {
        {"created", follow_created}, {"exported", follow_exported},
        {"opened", follow_opened},   {"closed", follow_closed},
        {"freed", follow_freed},     {"waited", follow_waited},
        {"merged", follow_merged},   {"unmerged", follow_not_merging},
        {"finding", follow_finding}, {"ended", follow_ended},
        {"made", follow_made},       {"suspended", follow_suspended},
        {"resumed", follow_resumed}, {"frames", follow_frames},
    };
    const size_t process = history_process_of(history, line);
    for (size_t i = 0; i < sizeof(followers) / sizeof(followers[0]); i++)
        if (strcmp(followers[i].event, line->event) == 0)
            followers[i].follow(history, line, process);
}

/* --- findings of logs --- */

/* Finds the process of a line among those of the event logs, or adds it. */
static size_t process_at(struct history *history, const struct log_process *facts, int64_t time) {
    for (size_t i = history->process_count; i-- > 0;) {
        const struct history_process *process = &history->processes[i];
        if (process->facts.pid == facts->pid && process->facts.pid_ns == facts->pid_ns &&
            process->first <= time)
            return i;
    }
    return history_add_process(history, facts, time) - 1;
}

static void mark_report(struct history *history, const struct report_line *report) {
    const struct log_line *line = report->line;
    size_t *number = mark_at(history, line->ts, &line->process, line->finding);
    int64_t time;
    if (*number == 0 && event_line_time(line->ts, &time)) {
        const struct history_mark mark = {.process = process_at(history, &line->process, time),
                                          .time = time,
                                          .finding = line->finding,
                                          .api = line->api,
                                          .detail = line->detail,
                                          .level = line->level};
        add_mark(history, mark, line->region);
        *number = history->mark_count;
    }
    if (*number != 0 && report->group->count > 0)
        history->marks[*number - 1].group = report->group;
}

/* --- reading --- */

/* Lines at the end of a process that only count repeats have no time of their own. */
static const char *add_report(struct history *history, const char *text, size_t length) {
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (!line)
        return wrong;
    const struct aggregate_group *group = aggregate_add_line(&history->aggregate, line, text);
    if (group && line->count <= 1)
        TOOL_APPEND(history->play->reports, history->play->report_count,
                    (struct report_line){line, group});
    else
        log_line_free(line);
    return NULL;
}

const char *history_add(void *arg, const char *text, size_t length) {
    struct history *history = arg;
    if (!event_line_is(text))
        return add_report(history, text, length);
    const char *wrong;
    struct event_line *line = event_line_parse(text, length, &wrong);
    if (!line)
        return wrong;
    line->order = history->play->line_count;
    TOOL_APPEND(history->play->lines, history->play->line_count, line);
    return NULL;
}

void history_begin(struct history *history) {
    *history = (struct history){.play = tool_zeroed(1, sizeof(*history->play))};
    aggregate_begin(&history->aggregate, GPS_LEVEL_INFO);
}

/* --- bytes in use, and what they were without sharing --- */

/* Without sharing each process that holds a region would have one of its own. */
static void add_regions(struct history *history) {
    TOOL_EACH(const struct history_lifetime, lifetime, history->lifetimes,
              history->lifetime_count) {
        if (lifetime->made)
            continue;
        add_change(history, lifetime->begin, lifetime->size, lifetime->size);
        add_change(history, lifetime->gone, -lifetime->size, -lifetime->size);
    }
    TOOL_EACH(const struct history_hold, hold, history->holds, history->hold_count) {
        const struct history_lifetime *lifetime = &history->lifetimes[hold->lifetime];
        if (lifetime->gone != HISTORY_OPEN && hold->from >= lifetime->gone)
            continue; /* the open of a stale handle, which failed */
        if (lifetime->made)
            continue;
        add_change(history, hold->from, 0, lifetime->size);
        add_change(history, hold->to, 0, -lifetime->size);
    }
}

static int steps_by_time(const void *left, const void *right) {
    const struct history_step *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

/* Makes one step with the sums of all changes up to each time. */
static void history_sum_up(struct history *history) {
    struct history_step *steps = history->steps, now = {.used = 0};
    size_t count = 0;
    TOOL_SORT(steps, history->step_count, steps_by_time);
    for (size_t i = 0; i < history->step_count; i++) {
        now = (struct history_step){steps[i].time, now.used + steps[i].used,
                                    now.without + steps[i].without};
        if (i + 1 == history->step_count || steps[i + 1].time != now.time)
            steps[count++] = now;
    }
    history->step_count = count;
}

/* --- the end --- */

/* Lines of one time stay in the order in which they were read. */
static int history_line_by_time(const void *left, const void *right) {
    const struct event_line *a = *(struct event_line *const *)left,
                            *b = *(struct event_line *const *)right;
    return (a->time > b->time) - (a->time < b->time) ?: tool_compare(a->order, b->order);
}

/* Memory is not gone while a process has it open, except where the open was that of a stale handle,
 * which fails. When memory was freed late, processes that never closed it had ended by then. */
static void clamp(struct history_hold *hold, struct history_lifetime *lifetime) {
    const bool now = lifetime->how && strcmp(lifetime->how, "now") == 0;
    if (lifetime->gone == HISTORY_OPEN || (hold->from >= lifetime->gone && !lifetime->kept))
        return;
    if (hold->to == HISTORY_OPEN && lifetime->late)
        hold->to = lifetime->gone;
    if (hold->to == HISTORY_OPEN && !now)
        lifetime->gone = HISTORY_OPEN; /* its exporter ended, and an importer goes on */
    if (hold->to != HISTORY_OPEN && hold->to > lifetime->gone)
        lifetime->gone = hold->to;
}

static void bound(struct history *history) {
    bool any = false;
    TOOL_EACH(const struct history_process, process, history->processes, history->process_count) {
        history->begin = any && history->begin < process->first ? history->begin : process->first;
        history->end = any && history->end > process->last ? history->end : process->last;
        any = true;
    }
    for (size_t i = 0; i < history->wait_count; i++)
        if (history->waits[i].from < history->begin)
            history->begin = history->waits[i].from;
    for (size_t i = 0; i < history->frames_count; i++)
        if (history->frames[i].from < history->begin)
            history->begin = history->frames[i].from;
    TOOL_EACH(struct history_lifetime, lifetime, history->lifetimes, history->lifetime_count) {
        lifetime->begin = lifetime->created != HISTORY_OPEN    ? lifetime->created
                          : lifetime->exported != HISTORY_OPEN ? lifetime->exported
                                                               : history->begin;
    }
}

void history_end(struct history *history) {
    struct history_play *play = history->play;
    aggregate_end(&history->aggregate);
    history->event_count = play->line_count;
    TOOL_SORT(play->lines, play->line_count, history_line_by_time);
    for (size_t i = 0; i < play->line_count; i++)
        history_follow(history, play->lines[i]);
    for (size_t i = 0; i < play->report_count; i++)
        mark_report(history, &play->reports[i]);
    for (size_t i = 0; i < history->hold_count; i++)
        clamp(&history->holds[i], &history->lifetimes[history->holds[i].lifetime]);
    bound(history);
    add_regions(history);
    history_sum_up(history);
}

static void free_play(struct history_play *play) {
    for (size_t i = 0; i < play->line_count; i++)
        event_line_free(play->lines[i]);
    for (size_t i = 0; i < play->report_count; i++)
        log_line_free(play->reports[i].line);
    free(play->lines);
    free(play->reports);
    string_map_free(&play->processes, NULL);
    string_map_free(&play->ids, NULL);
    string_map_free(&play->names, NULL);
    string_map_free(&play->open, NULL);
    string_map_free(&play->findings, NULL);
    string_map_free(&play->made, NULL);
    string_map_free(&play->frames, NULL);
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
    free(history->merges);
    free(history->frames);
    free(history->made);
    free(history->steps);
    aggregate_free(&history->aggregate);
}
