/*
 * lessons_judge.c - judges allocations, and makes the rules.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"
#include "lessons.h"

#define STEADY 2000 /* ms; what is not unchanged for so long is no weight */

/* --- one allocation --- */

static enum lesson_verdict judge_block(const struct lesson *lesson,
                                       const struct lesson_block *block, bool any) {
    const uint64_t end = lesson->freed ? lesson->freed : lesson->process->looked;
    const uint64_t life = end > lesson->born ? end - lesson->born : 0;
    const uint64_t steady = block->hash[0] && end > block->since ? end - block->since : 0;
    if (!block->full && !any)
        return LESSON_NOT_COPIED;
    if (block->changed)
        return LESSON_CHANGED;
    if (steady < STEADY)
        return lesson->freed && life < 2 * STEADY ? LESSON_BRIEF : LESSON_YOUNG;
    if ((block->rewritten || !block->full) && steady < life / 2)
        return block->full ? LESSON_REWRITTEN : LESSON_CHANGED;
    return LESSON_FINE;
}

/* Blocks that copies did not fill are not merged, so they do no harm; all others must be fine. */
static enum lesson_verdict judge_as(struct lesson *lesson, bool any) {
    enum lesson_verdict verdict = LESSON_NOT_COPIED;
    lesson->any = any;
    lesson->from = lesson->saves = 0;
    for (size_t i = 0; i < lesson->count; i++) {
        struct lesson_block *block = &lesson->blocks[i];
        const enum lesson_verdict this = judge_block(lesson, block, any);
        block->fine = this == LESSON_FINE;
        lesson->saves += block->fine ? block->size : 0;
        if (block->fine && block->since > lesson->from)
            lesson->from = block->since;
        if (this == LESSON_CHANGED || verdict == LESSON_NOT_COPIED ||
            (verdict == LESSON_FINE && this != LESSON_NOT_COPIED))
            verdict = this;
    }
    return verdict;
}

static void judge(struct lesson *lesson, bool any) {
    lesson->verdict = lesson->pool ? LESSON_POOL : judge_as(lesson, false);
    if (lesson->verdict == LESSON_NOT_COPIED && any)
        lesson->verdict = judge_as(lesson, true);
}

/* --- equal blocks of replicas; the map has a bit a replica that has such a block --- */

static void note_replicas(const struct lesson *lesson, struct string_map **map) {
    for (size_t i = 0; i < lesson->count; i++) {
        if (!lesson->blocks[i].fine)
            continue;
        unsigned *replicas = string_map_get(*map, lesson->blocks[i].hash);
        if (!replicas) {
            replicas = tool_resize(NULL, 1, sizeof(*replicas));
            *replicas = 0;
            string_map_put(map, lesson->blocks[i].hash, replicas);
        }
        *replicas |= 1u << lesson->process->replica;
    }
}

static void measure(struct lesson *lesson, const struct string_map *map, unsigned all) {
    if (lesson->verdict != LESSON_FINE)
        return;
    lesson->saves = 0;
    for (size_t i = 0; i < lesson->count; i++)
        if (lesson->blocks[i].fine &&
            *(unsigned *)string_map_get(map, lesson->blocks[i].hash) == all)
            lesson->saves += lesson->blocks[i].size;
    if (lesson->saves == 0)
        lesson->verdict = LESSON_DIFFERENT;
}

/* --- rules, for allocations of one program and size --- */

struct alike {
    struct lesson **list;
    size_t count;
    const char *caller; /* only those; NULL: all */
};

static bool is_one(const struct alike *alike, size_t i) {
    return !alike->caller || strcmp(alike->list[i]->caller, alike->caller) == 0;
}

/* Numbers them in each process. False: several threads allocate them, in no fixed order. */
static bool number(const struct alike *alike) {
    const struct lesson *last = NULL;
    bool ordered = true;
    for (size_t i = 0; i < alike->count; i++) {
        struct lesson *this = alike->list[i];
        if (!is_one(alike, i))
            continue;
        const bool next = last && last->process == this->process;
        this->index = next ? last->index + 1 : 0;
        ordered = ordered && (!next || last->thread == this->thread);
        last = this;
    }
    return ordered;
}

/* The longest run of indices that are fine in every process; all of them: every index. */
static void find_run(const struct alike *alike, struct lesson_rule *rule) {
    bool *bad = tool_resize(NULL, alike->count + 1, sizeof(*bad));
    uint64_t count = 0, length = 0, best = 0;
    memset(bad, 0, alike->count + 1);
    for (size_t i = 0; i < alike->count; i++)
        if (is_one(alike, i)) {
            const uint64_t index = alike->list[i]->index;
            bad[index] |= alike->list[i]->verdict != LESSON_FINE;
            count = index >= count ? index + 1 : count;
        }
    for (uint64_t i = 0; i < count; i++) {
        length = bad[i] ? 0 : length + 1;
        if (length > best) {
            best = length;
            rule->first = i + 1 - length;
            rule->last = length == count ? UINT64_MAX : i;
        }
    }
    free(bad);
}

/* What is fine and not taken has no selectors of its own. */
static void sum_up(const struct alike *alike, struct lesson_rule *rule) {
    const struct lesson_process *process = NULL;
    uint64_t processes = 0;
    for (size_t i = 0; i < alike->count; i++) {
        struct lesson *this = alike->list[i];
        if (!is_one(alike, i))
            continue;
        if (this->index < rule->first || this->index > rule->last) {
            this->verdict = this->verdict == LESSON_FINE ? LESSON_UNORDERED : this->verdict;
            continue;
        }
        processes += this->process != process;
        process = this->process;
        rule->count++;
        rule->saves += this->saves;
        rule->any |= this->any;
        rule->from = this->from > rule->from ? this->from : rule->from;
    }
    rule->count = processes ? (rule->count + processes - 1) / processes : 0;
    rule->saves /= processes ? processes : 1;
}

static void add_rule(struct lessons *lessons, const struct alike *alike) {
    struct lesson_rule rule = {.program = alike->list[0]->process->program,
                               .caller = alike->caller,
                               .size = alike->list[0]->size,
                               .first = 1}; /* none */
    const bool ordered = number(alike);
    find_run(alike, &rule);
    if (!ordered && rule.last != UINT64_MAX)
        rule.first = rule.last + 1;
    sum_up(alike, &rule);
    if (!rule.count)
        return;
    lessons->rules = tool_grow(lessons->rules, lessons->rule_count, sizeof(rule));
    lessons->rules[lessons->rule_count++] = rule;
}

/* A rule for each caller, if that separates what is fine. */
static void add_rules(struct lessons *lessons, struct alike alike) {
    struct string_map *callers = NULL;
    size_t count = 0, fine = 0;
    bool named = true;
    for (size_t i = 0; i < alike.count; i++) {
        count += string_map_put(&callers, alike.list[i]->caller, alike.list[i]);
        named = named && alike.list[i]->caller[0];
        fine += alike.list[i]->verdict == LESSON_FINE;
    }
    if (!named || count == 1 || fine == alike.count)
        add_rule(lessons, &alike);
    for (size_t i = 0; named && count > 1 && fine < alike.count && i < alike.count; i++) {
        alike.caller = alike.list[i]->caller;
        if (string_map_get(callers, alike.caller) == alike.list[i])
            add_rule(lessons, &alike);
    }
    string_map_free(&callers, NULL);
}

/* --- all --- */

static int by_kind(const void *left, const void *right) {
    const struct lesson *a = *(struct lesson *const *)left, *b = *(struct lesson *const *)right;
    int order = strcmp(a->process->program, b->process->program);
    if (order == 0)
        order = tool_compare(b->size, a->size);
    if (order == 0)
        order = tool_compare((uintptr_t)a->process, (uintptr_t)b->process);
    return order != 0 ? order : tool_compare(a->number, b->number);
}

void lessons_judge(struct lessons *lessons, unsigned replicas, bool any) {
    struct string_map *map = NULL;
    lessons->rule_count = 0;
    if (lessons->count > 0)
        qsort(lessons->list, lessons->count, sizeof(*lessons->list), by_kind);
    for (size_t i = 0; i < lessons->count; i++) {
        judge(lessons->list[i], any);
        note_replicas(lessons->list[i], &map);
    }
    for (size_t i = 0; replicas > 1 && i < lessons->count; i++)
        measure(lessons->list[i], map, (1u << replicas) - 1);
    for (size_t i = 0, count; i < lessons->count; i += count) {
        count = lessons_alike(lessons, i);
        add_rules(lessons, (struct alike){&lessons->list[i], count, NULL});
    }
    string_map_free(&map, free);
}
