/*
 * allocation_groups.c - the allocations of a run, brought into groups.
 */
#include "allocation_groups.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"

/* One allocation on its way into a group. */
struct listed {
    const struct log_line *line;
    size_t kin, process; /* numbers of what is alike, and of its process */
    uint64_t index;
    bool cut; /* another place of the program than the one before it in its process */
};

struct maker {
    struct listing *listing;
    struct listed *listed;
    size_t count;
    struct index *kin, *processes, *stacks;
    size_t kin_count, process_count;
};

static const char *or_none(const char *string) {
    return string != NULL ? string : "";
}

/* --- names for what is equal --- */

/* The number that stands for a key, from 1; takes the key. */
static size_t number_of(struct index **index, size_t *count, char *key) {
    void *value = index_get(*index, key);
    if (!value) {
        value = (void *)(uintptr_t)++ * count;
        index_put(index, key, value);
    }
    free(key);
    return (size_t)(uintptr_t)value;
}

static char *process_key(const struct log_line *line, const char *more) {
    return tool_format("%" PRId64 " %" PRId64 " %s %s", line->process.pid_ns, line->process.pid,
                       or_none(line->allocation.process), more);
}

static char *kin_key(const struct log_line *line) {
    return tool_format("%s\n%s\n%s\n%" PRId64 " %" PRId64, or_none(line->process.command),
                       or_none(line->allocation.caller), or_none(line->allocation.kind), line->size,
                       line->device);
}

/* --- reading --- */

/* A stack is in the log with its first line only. */
static void note_stack(struct maker *maker, const struct log_line *line) {
    char *key = process_key(line, or_none(line->site));
    if (line->stack.count > 0 && index_get(maker->stacks, key) == NULL)
        index_put(&maker->stacks, key, (void *)(uintptr_t)&line->stack);
    free(key);
}

static const struct log_stack *stack_of(const struct maker *maker, const struct log_line *line) {
    char *key = process_key(line, or_none(line->site));
    const struct log_stack *stack = index_get(maker->stacks, key);
    free(key);
    return stack != NULL ? stack : &line->stack;
}

static void add(struct maker *maker, const struct log_line *line) {
    maker->listed = tool_grow(maker->listed, maker->count, sizeof(*maker->listed));
    maker->listed[maker->count++] = (struct listed){
        .line = line,
        .kin = number_of(&maker->kin, &maker->kin_count, kin_key(line)),
        .process = number_of(&maker->processes, &maker->process_count, process_key(line, ""))};
    maker->listing->allocations++;
    maker->listing->bytes += (uint64_t)line->size;
    note_stack(maker, line);
}

static void read_lines(struct maker *maker, const struct logs *logs) {
    for (size_t i = 0; i < logs->count; i++) {
        const struct log_line *line = logs->lines[i];
        if (line->allocation.number > 0)
            add(maker, line);
        else if (!line->finding && strstr(or_none(line->message), "log_max") != NULL)
            maker->listing->cut = true;
    }
}

/* --- indices --- */

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_process(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    int order = compare(a->kin, b->kin);
    if (order == 0)
        order = compare(a->process, b->process);
    return order != 0 ? order
                      : compare((uint64_t)a->line->allocation.number,
                                (uint64_t)b->line->allocation.number);
}

static int by_index(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    int order = compare(a->kin, b->kin);
    if (order == 0)
        order = compare(a->index, b->index);
    return order != 0 ? order : compare(a->line->order, b->line->order);
}

static bool from_one_place(const struct log_line *a, const struct log_line *b) {
    return strcmp(or_none(a->site), or_none(b->site)) == 0 &&
           strcmp(or_none(a->api), or_none(b->api)) == 0;
}

static void number_kin(struct maker *maker) {
    qsort(maker->listed, maker->count, sizeof(*maker->listed), by_process);
    for (size_t i = 1; i < maker->count; i++) {
        const struct listed *before = &maker->listed[i - 1];
        struct listed *this = &maker->listed[i];
        if (this->kin != before->kin || this->process != before->process)
            continue;
        this->index = before->index + 1;
        this->cut = !from_one_place(before->line, this->line);
    }
    qsort(maker->listed, maker->count, sizeof(*maker->listed), by_index);
}

/* --- groups --- */

static struct listing_group *begin_group(struct maker *maker, const struct listed *listed) {
    struct listing *listing = maker->listing;
    const struct log_line *line = listed->line;
    listing->groups = tool_grow(listing->groups, listing->count, sizeof(*listing->groups));
    struct listing_group *group = &listing->groups[listing->count++];
    *group = (struct listing_group){.first = line,
                                    .kin = listed->kin,
                                    .index = listed->index,
                                    .stack = stack_of(maker, line),
                                    .ruled = strcmp(or_none(line->allocation.kind), "plain") == 0 &&
                                             or_none(line->allocation.caller)[0] != 0 &&
                                             or_none(line->process.command)[0] != 0};
    return group;
}

/* The first of all that have its index, `end` behind the last. */
static bool begins_group(const struct listed *first, const struct listed *end,
                         const struct listing_group *group) {
    bool cut = !group || group->kin != first->kin;
    for (const struct listed *each = first; each < end && !cut; each++)
        cut = each->cut;
    return cut;
}

static void make_groups(struct maker *maker) {
    const struct listed *end = maker->listed + maker->count, *after;
    struct listing_group *group = NULL;
    for (const struct listed *at = maker->listed; at < end; at = after) {
        for (after = at; after < end && after->kin == at->kin && after->index == at->index;)
            after++;
        if (begins_group(at, after, group))
            group = begin_group(maker, at);
        group->last = at->index;
        group->count += (uint64_t)(after - at);
        if (group->index == at->index)
            group->process_count = (size_t)(after - at);
    }
}

static int by_time(const void *left, const void *right) {
    const struct listing_group *a = left, *b = right;
    int order = strcmp(a->first->ts, b->first->ts);
    return order != 0 ? order : compare(a->first->order, b->first->order);
}

void listing_make(struct listing *listing, const struct logs *logs) {
    struct maker maker = {.listing = listing};
    *listing = (struct listing){NULL, 0, 0, 0, 0, false};
    read_lines(&maker, logs);
    if (maker.count > 0) {
        number_kin(&maker);
        make_groups(&maker);
        qsort(listing->groups, listing->count, sizeof(*listing->groups), by_time);
    }
    for (size_t i = 0; i < listing->count; i++)
        listing->groups[i].number = i + 1;
    listing->processes = maker.process_count;
    index_free(&maker.kin, NULL);
    index_free(&maker.processes, NULL);
    index_free(&maker.stacks, NULL);
    free(maker.listed);
}

void listing_free(struct listing *listing) {
    free(listing->groups);
}

bool listing_one_device(const struct listing *listing, const struct listing_group *group) {
    bool one = true;
    for (size_t i = 0; i < listing->count && one; i++) {
        const struct log_line *line = listing->groups[i].first;
        one = line->device == group->first->device ||
              strcmp(or_none(line->process.command), or_none(group->first->process.command)) != 0;
    }
    return one;
}
