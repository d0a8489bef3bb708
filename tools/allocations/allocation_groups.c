/*
 * allocation_groups.c - puts the allocations of a run into groups.
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
    size_t alike, process; /* numbers of its kind and of its process */
    uint64_t index;
    bool cut; /* from another place of the program than the one before it in its process */
};

struct maker {
    struct allocation_groups *groups;
    struct listed *listed;
    size_t count;
    struct string_map *alike, *processes, *stacks;
    size_t alike_count, process_count;
};

/* --- keys: equal things have equal keys --- */

/* The number of a key, from 1; frees the key. */
static size_t number_of(struct string_map **map, size_t *count, char *key) {
    size_t *number = string_map_make(map, key, sizeof(*number));
    if (*number == 0)
        *number = ++*count;
    free(key);
    return *number;
}

static char *process_key(const struct log_line *line, const char *more) {
    return tool_format("%" PRId64 " %" PRId64 " %s %s", line->process.pid_ns, line->process.pid,
                       tool_or(line->allocation.process, ""), more);
}

static char *alike_key(const struct log_line *line) {
    return tool_format("%s\n%s\n%s\n%" PRId64 " %" PRId64, tool_or(line->process.command, ""),
                       tool_or(line->allocation.caller, ""), tool_or(line->allocation.kind, ""),
                       line->size, line->device);
}

/* --- reading --- */

/* Only the first line of a site has the stack. */
static void note_stack(struct maker *maker, const struct log_line *line) {
    char *key = process_key(line, tool_or(line->site, ""));
    const struct log_stack **stack = string_map_make(&maker->stacks, key, sizeof(*stack));
    if (!*stack || (*stack)->count == 0)
        *stack = &line->stack;
    free(key);
}

static const struct log_stack *stack_of(const struct maker *maker, const struct log_line *line) {
    char *key = process_key(line, tool_or(line->site, ""));
    const struct log_stack **stack = string_map_get(maker->stacks, key);
    free(key);
    return *stack;
}

static void add(struct maker *maker, const struct log_line *line) {
    maker->listed = tool_grow(maker->listed, maker->count, sizeof(*maker->listed));
    maker->listed[maker->count++] = (struct listed){
        .line = line,
        .alike = number_of(&maker->alike, &maker->alike_count, alike_key(line)),
        .process = number_of(&maker->processes, &maker->process_count, process_key(line, ""))};
    maker->groups->allocations++;
    maker->groups->bytes += (uint64_t)line->size;
    note_stack(maker, line);
}

const char *allocation_groups_add(void *arg, const char *text, size_t length) {
    struct allocation_groups *groups = arg;
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, true, &wrong);
    if (!line)
        return wrong;
    line->order = groups->line_count;
    groups->lines = tool_grow(groups->lines, groups->line_count, sizeof(line));
    groups->lines[groups->line_count++] = line;
    return NULL;
}

static int by_line(const void *left, const void *right) {
    const struct log_line *a = *(struct log_line *const *)left;
    const struct log_line *b = *(struct log_line *const *)right;
    int order = strcmp(a->ts, b->ts);
    return order != 0 ? order : tool_compare(a->order, b->order);
}

static void read_lines(struct maker *maker) {
    struct allocation_groups *groups = maker->groups;
    if (groups->line_count > 0)
        qsort(groups->lines, groups->line_count, sizeof(*groups->lines), by_line);
    for (size_t i = 0; i < groups->line_count; i++) {
        const struct log_line *line = groups->lines[i];
        if (line->allocation.number > 0)
            add(maker, line);
        else if (!line->finding && strstr(tool_or(line->message, ""), "log_max"))
            groups->cut = true;
    }
}

/* --- indices --- */

static int by_process(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    int order = tool_compare(a->alike, b->alike);
    if (order == 0)
        order = tool_compare(a->process, b->process);
    return order != 0 ? order
                      : tool_compare((uint64_t)a->line->allocation.number,
                                     (uint64_t)b->line->allocation.number);
}

static int by_index(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    int order = tool_compare(a->alike, b->alike);
    if (order == 0)
        order = tool_compare(a->index, b->index);
    return order != 0 ? order : tool_compare(a->line->order, b->line->order);
}

static bool from_one_place(const struct log_line *a, const struct log_line *b) {
    return strcmp(tool_or(a->site, ""), tool_or(b->site, "")) == 0 &&
           strcmp(tool_or(a->api, ""), tool_or(b->api, "")) == 0;
}

static void number_indices(struct maker *maker) {
    qsort(maker->listed, maker->count, sizeof(*maker->listed), by_process);
    for (size_t i = 1; i < maker->count; i++) {
        const struct listed *before = &maker->listed[i - 1];
        struct listed *this = &maker->listed[i];
        if (this->alike != before->alike || this->process != before->process)
            continue;
        this->index = before->index + 1;
        this->cut = !from_one_place(before->line, this->line);
    }
    qsort(maker->listed, maker->count, sizeof(*maker->listed), by_index);
}

/* --- groups --- */

static struct allocation_group *begin_group(struct maker *maker, const struct listed *listed) {
    struct allocation_groups *groups = maker->groups;
    const struct log_line *line = listed->line;
    groups->list = tool_grow(groups->list, groups->count, sizeof(*groups->list));
    struct allocation_group *group = &groups->list[groups->count++];
    *group = (struct allocation_group){
        .first = line,
        .alike = listed->alike,
        .index = listed->index,
        .stack = stack_of(maker, line),
        .ruled = strcmp(tool_or(line->allocation.kind, ""), "plain") == 0 &&
                 tool_or(line->allocation.caller, "")[0] != 0 &&
                 tool_or(line->process.command, "")[0] != 0};
    return group;
}

/* From the first of the alike ones that have one index to `end`, behind the last. */
static bool begins_group(const struct listed *first, const struct listed *end,
                         const struct allocation_group *group) {
    bool cut = !group || group->alike != first->alike;
    for (const struct listed *each = first; each < end && !cut; each++)
        cut = each->cut;
    return cut;
}

static void make_groups(struct maker *maker) {
    const struct listed *end = maker->listed + maker->count;
    struct allocation_group *group = NULL;
    for (const struct listed *at = maker->listed, *after; at < end; at = after) {
        for (after = at; after < end && after->alike == at->alike && after->index == at->index;)
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
    const struct allocation_group *a = left, *b = right;
    int order = strcmp(a->first->ts, b->first->ts);
    return order != 0 ? order : tool_compare(a->first->order, b->first->order);
}

/* From the last on: those before it still have the number of their kind, which says what is alike.
 */
static void number_groups(struct allocation_groups *groups) {
    for (size_t i = groups->count; i-- > 0;) {
        size_t first = 0;
        while (groups->list[first].alike != groups->list[i].alike)
            first++;
        groups->list[i].number = i + 1;
        groups->list[i].alike = first + 1;
    }
}

void allocation_groups_make(struct allocation_groups *groups) {
    struct maker maker = {.groups = groups};
    read_lines(&maker);
    if (maker.count > 0) {
        number_indices(&maker);
        make_groups(&maker);
        qsort(groups->list, groups->count, sizeof(*groups->list), by_time);
    }
    number_groups(groups);
    groups->processes = maker.process_count;
    string_map_free(&maker.alike, NULL);
    string_map_free(&maker.processes, NULL);
    string_map_free(&maker.stacks, NULL);
    free(maker.listed);
}

void allocation_groups_free(struct allocation_groups *groups) {
    for (size_t i = 0; i < groups->line_count; i++)
        log_line_free(groups->lines[i]);
    free(groups->lines);
    free(groups->list);
}

bool allocation_groups_one_device(const struct allocation_groups *groups,
                                  const struct allocation_group *group) {
    bool one = true;
    for (size_t i = 0; i < groups->count && one; i++) {
        const struct log_line *line = groups->list[i].first;
        one = line->device == group->first->device ||
              strcmp(tool_or(line->process.command, ""),
                     tool_or(group->first->process.command, "")) != 0;
    }
    return one;
}
