/*
 * lessons.h - what the processes of `gpushare learn` reported (shim/learn/lesson.h), judged.
 *
 * An allocation is fine when all its blocks that copies from the host filled stay as they were;
 * with several replicas some of them must also be equal in all. A rule knows an allocation by
 * program and size, and where that is not enough by the caller, or by its index among those of one
 * size in its process. A rule is made only where all that it takes is fine in every process.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LESSONS_REPLICAS 16

enum lesson_verdict {
    LESSON_FINE,
    LESSON_POOL,
    LESSON_BRIEF,
    LESSON_NOT_COPIED,
    LESSON_CHANGED,
    LESSON_REWRITTEN,
    LESSON_YOUNG,
    LESSON_DIFFERENT,
    LESSON_UNORDERED,
    LESSON_VERDICTS,
};

struct lesson {
    json_t *json; /* its last line, which has the strings */
    const char *process, *program, *caller;
    uint64_t number, size, thread;
    unsigned replica;
    enum lesson_verdict verdict;
    bool any;             /* fine with content = any only */
    uint64_t from, saves; /* unchanged from then on (ms); bytes that others need not have */
    uint64_t index;       /* of those that one rule could take */
};

struct lesson_rule {
    const char *program, *caller; /* caller: NULL: any */
    uint64_t size, first, last;   /* last: UINT64_MAX: every index */
    bool any;
    uint64_t count, from, saves; /* of one process */
};

struct lessons {
    struct lesson **list; /* judged: by program, size, process and number */
    size_t count;
    struct string_map *known, *looked; /* allocations; the last line of each process */
    struct lesson_rule *rules;
    size_t rule_count;
};

/* Adds what a file has. */
void lessons_read(struct lessons *lessons, FILE *file, unsigned replica);
/* Judges all, and makes the rules. `any`: what kernels filled counts, too. */
void lessons_judge(struct lessons *lessons, unsigned replicas, bool any);
void lessons_free(struct lessons *lessons);

/* How many, from the first on, have its program and size. */
size_t lessons_alike(const struct lessons *lessons, size_t first);
/* What a second process saves, by all rules. */
uint64_t lessons_saved(const struct lessons *lessons);

/* What was learned, as a table for people and as rules. */
void lessons_table(FILE *out, const struct lessons *lessons);
void lessons_rules(FILE *out, const struct lessons *lessons);
