/* history_follow.c - follows the lines of event logs, one after the other. See history.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "history_play.h"

static size_t *number_at(struct string_map **map, char *key) {
    size_t *number = string_map_make(map, key, sizeof(*number));
    free(key);
    return number;
}

/* --- processes and regions --- */

size_t history_add_process(struct history *history, const struct log_process *facts, int64_t time) {
    history->processes =
        tool_grow(history->processes, history->process_count, sizeof(*history->processes));
    struct history_process *process = &history->processes[history->process_count];
    *process = (struct history_process){.facts = *facts, .first = time, .last = time};
    process->facts.command = tool_or(facts->command, "?");
    return history->process_count++;
}

static size_t process_of(struct history *history, const struct event_line *line) {
    size_t *number = number_at(&history->play->processes,
                               tool_format("%" PRId64 " %" PRId64 " %s", line->process.pid,
                                           line->process.pid_ns, line->image));
    if (*number == 0)
        *number = history_add_process(history, &line->process, line->time) + 1;
    history->processes[*number - 1].last = line->time;
    return *number - 1;
}

static size_t add_region(struct history *history, const char *name, const char *id) {
    history->regions =
        tool_grow(history->regions, history->region_count, sizeof(*history->regions));
    history->regions[history->region_count] = (struct history_region){name, id};
    return history->region_count++;
}

/* The lane of a name, which the first line of it makes. */
static size_t named(struct history *history, const char *name, const char *id) {
    size_t *number = number_at(&history->play->names, tool_copy(name));
    if (*number == 0)
        *number = add_region(history, name, id) + 1;
    return *number - 1;
}

static struct history_entry *entry_of(struct history *history, const struct event_line *line) {
    struct history_entry *entry =
        string_map_make(&history->play->ids, line->region, sizeof(struct history_entry));
    if (entry->region == 0)
        entry->region = 1 + (line->name ? named(history, line->name, line->region)
                                        : add_region(history, NULL, line->region));
    return entry;
}

/* --- lifetimes and holds --- */

static struct history_lifetime *add_lifetime(struct history *history, struct history_entry *entry,
                                             size_t owner, int64_t size) {
    history->lifetimes =
        tool_grow(history->lifetimes, history->lifetime_count, sizeof(*history->lifetimes));
    struct history_lifetime *lifetime = &history->lifetimes[history->lifetime_count++];
    *lifetime = (struct history_lifetime){.region = entry->region - 1,
                                          .owner = owner,
                                          .size = size,
                                          .created = HISTORY_OPEN,
                                          .exported = HISTORY_OPEN,
                                          .freed = HISTORY_OPEN,
                                          .gone = HISTORY_OPEN};
    entry->lifetime = history->lifetime_count;
    return lifetime;
}

static struct history_lifetime *lifetime_of(struct history *history,
                                            const struct history_entry *entry) {
    return entry->lifetime != 0 ? &history->lifetimes[entry->lifetime - 1] : NULL;
}

static void follow_created(struct history *history, const struct event_line *line, size_t process) {
    add_lifetime(history, entry_of(history, line), process, line->size)->created = line->time;
}

static void follow_exported(struct history *history, const struct event_line *line,
                            size_t process) {
    struct history_entry *entry = entry_of(history, line);
    struct history_lifetime *lifetime = lifetime_of(history, entry);
    const bool began = lifetime && lifetime->owner == process &&
                       lifetime->exported == HISTORY_OPEN && lifetime->gone == HISTORY_OPEN;
    if (!began)
        lifetime = add_lifetime(history, entry, process, line->size);
    lifetime->exported = line->time;
}

static void follow_freed(struct history *history, const struct event_line *line, size_t process) {
    struct history_entry *entry = entry_of(history, line);
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
}

static size_t *open_hold(struct history *history, const struct event_line *line, size_t process) {
    return number_at(&history->play->open, tool_format("%zu %s", process, line->region));
}

static void follow_opened(struct history *history, const struct event_line *line, size_t process) {
    struct history_entry *entry = entry_of(history, line);
    size_t *hold = open_hold(history, line, process);
    if (entry->lifetime == 0) /* its exporter has no log */
        add_lifetime(history, entry, HISTORY_NONE, line->size);
    if (*hold != 0)
        return;
    history->holds = tool_grow(history->holds, history->hold_count, sizeof(*history->holds));
    history->holds[history->hold_count++] =
        (struct history_hold){entry->lifetime - 1, process, line->time, HISTORY_OPEN};
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
    history->waits = tool_grow(history->waits, history->wait_count, sizeof(*history->waits));
    history->waits[history->wait_count++] =
        (struct history_wait){process, region, line->time - line->ns / 1000, line->time, of_import};
}

static void add_merge(struct history *history, struct history_merge merge) {
    struct history_play *play = history->play;
    play->merges = tool_grow(play->merges, play->merge_count, sizeof(merge));
    play->merges[play->merge_count++] = merge;
}

static void follow_merged(struct history *history, const struct event_line *line, size_t process) {
    const int64_t saved = line->saved < line->size ? line->saved : line->size;
    history->processes[process].merged += line->size;
    add_merge(history, (struct history_merge){line->time, line->size, saved, 0});
}

/* A log that began late does not have all that was merged. */
static void leave_merged(struct history *history, size_t index, int64_t time, int64_t size) {
    struct history_process *process = &history->processes[index];
    const int64_t gone = size < process->merged ? size : process->merged;
    process->merged -= gone;
    if (gone > 0)
        add_merge(history, (struct history_merge){time, 0, 0, gone});
}

static void follow_unmerged(struct history *history, const struct event_line *line,
                            size_t process) {
    leave_merged(history, process, line->time, line->size);
}

/* What a process has held goes with it; its memory stays as long as others hold that. */
static void follow_ended(struct history *history, const struct event_line *line, size_t process) {
    history->processes[process].ended = true;
    for (size_t i = 0; i < history->hold_count; i++)
        if (history->holds[i].process == process && history->holds[i].to == HISTORY_OPEN)
            history->holds[i].to = line->time;
    for (size_t i = 0; i < history->lifetime_count; i++)
        if (history->lifetimes[i].owner == process && history->lifetimes[i].gone == HISTORY_OPEN)
            history->lifetimes[i].gone = line->time;
    leave_merged(history, process, line->time, INT64_MAX);
}

size_t *history_mark_at(struct history *history, const char *ts, const struct log_process *process,
                        const char *finding) {
    return number_at(&history->play->findings, tool_format("%s %" PRId64 " %" PRId64 " %s", ts,
                                                           process->pid, process->pid_ns, finding));
}

void history_add_mark(struct history *history, struct history_mark mark, const char *region) {
    const struct history_entry *entry = region ? string_map_get(history->play->ids, region) : NULL;
    mark.region = entry ? entry->region - 1 : HISTORY_NONE;
    history->marks = tool_grow(history->marks, history->mark_count, sizeof(mark));
    history->marks[history->mark_count++] = mark;
}

static void follow_finding(struct history *history, const struct event_line *line, size_t process) {
    struct history_mark mark = {.process = process,
                                .time = line->time,
                                .finding = line->finding,
                                .api = line->api,
                                .detail = line->detail,
                                .level = GPS_LEVEL_ERROR};
    log_line_level(line->level, &mark.level);
    history_add_mark(history, mark, line->region);
    *history_mark_at(history, line->ts, &line->process, line->finding) = history->mark_count;
}

void history_follow(struct history *history, const struct event_line *line) {
    static void (*const followers[])(struct history *, const struct event_line *, size_t) = {
        [EVENT_CREATED] = follow_created, [EVENT_EXPORTED] = follow_exported,
        [EVENT_OPENED] = follow_opened,   [EVENT_CLOSED] = follow_closed,
        [EVENT_FREED] = follow_freed,     [EVENT_WAITED] = follow_waited,
        [EVENT_MERGED] = follow_merged,   [EVENT_UNMERGED] = follow_unmerged,
        [EVENT_FINDING] = follow_finding, [EVENT_ENDED] = follow_ended,
    };
    const size_t process = process_of(history, line);
    if (line->kind != EVENT_OTHER)
        followers[line->kind](history, line, process);
}
