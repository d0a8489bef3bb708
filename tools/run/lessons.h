/*
 * lessons.h - what the processes of `gpushare learn` reported (shim/learn/lesson.h), judged.
 *
 * An allocation is fine when all its blocks that copies from the host filled stay as they were;
 * with several replicas some of them must also be equal in all. A rule knows an allocation by
 * program and size, and where that is not enough by the caller, or by its index among those of one
 * size in its process. A rule is made only where all that it takes is fine in every process. Times
 * are milliseconds since a process began.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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

struct lesson_process {
    char *program;
    unsigned replica;
    uint64_t looked; /* all was looked at until then */
};

struct lesson_block {
    uint64_t size, since, changed, rewritten;
    bool full, fine;
    char hash[33]; /* "": not looked at */
};

struct lesson {
    struct lesson_process *process;
    uint64_t number, size, thread, born, freed; /* freed: 0: never */
    bool pool;
    char *caller;
    struct lesson_block *blocks;
    size_t count;
    enum lesson_verdict verdict;
    bool any;             /* fine with content = any only */
    uint64_t from, saves; /* unchanged from then on; bytes that another process need not have */
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
    struct string_map *known, *processes;
    struct lesson_rule *rules;
    size_t rule_count;
};

/* Adds the lines that are new in the file. */
void lessons_read(struct lessons *lessons, FILE *file, unsigned replica);
void lessons_free(struct lessons *lessons);

/* Those from the first on that have its program and size. */
size_t lessons_alike(const struct lessons *lessons, size_t first);

/* lessons_judge.c: `any`: what kernels filled counts, too. May be repeated. */
void lessons_judge(struct lessons *lessons, unsigned replicas, bool any);

/* lessons_print.c */
void lessons_table(FILE *out, const struct lessons *lessons);
void lessons_rules(FILE *out, const struct lessons *lessons);
