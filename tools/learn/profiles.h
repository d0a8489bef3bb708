/*
 * profiles.h - what the processes of `gpushare learn` reported (shim/learn/profile.h), judged.
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

#define PROFILES_REPLICAS 16

enum profile_verdict {
    PROFILE_FINE,
    PROFILE_POOL,
    PROFILE_BRIEF,
    PROFILE_SHORT,
    PROFILE_NOT_COPIED,
    PROFILE_CHANGED,
    PROFILE_REWRITTEN,
    PROFILE_YOUNG,
    PROFILE_DIFFERENT,
    PROFILE_UNORDERED,
    PROFILE_VERDICTS,
};

struct profile {
    json_t *json; /* its last line, which has the strings */
    const char *process, *program, *caller;
    uint64_t number, size, thread;
    unsigned replica;
    enum profile_verdict verdict;
    bool created;         /* by cuMemCreate */
    bool any;             /* fine with content = any only */
    uint64_t from, saves; /* unchanged from then on (ms); bytes that others need not have */
    uint64_t apart;       /* measured: bytes in blocks that not all replicas have, beside such */
    uint64_t index;       /* of those that one rule could take */
};

struct profile_rule {
    const char *program, *caller; /* caller: NULL: any */
    uint64_t size, first, last;   /* last: UINT64_MAX: every index */
    bool any, created;
    uint64_t count, from, saves; /* of one process */
};

struct profiles {
    struct profile **list; /* judged: by program, size, process and number */
    size_t count;
    struct string_map *known, *looked, *makers; /* allocations; of each process the last line, and
                                                   what it created */
    struct profile_created {
        uint64_t made, watched;
    } * *created; /* of each process, its bytes of cuMemCreate */
    size_t created_count;
    struct profile_rule *rules;
    size_t rule_count;
    unsigned lacking; /* a bit for each replica of which an allocation failed for want of memory */
};

/* Adds the profiles in a file. */
void profiles_read(struct profiles *profiles, FILE *file, unsigned replica);
/* Of one process: bytes of allocations that are equal in part, in blocks that not all have. */
uint64_t profiles_apart(const struct profiles *profiles, unsigned replicas);
/* Judges all profiles, and makes the rules. `any`: memory that kernels filled counts, too. */
void profiles_judge(struct profiles *profiles, unsigned replicas, bool any);
void profiles_free(struct profiles *profiles);

/* The most bytes of cuMemCreate that one process made and that were not watched. */
uint64_t profiles_unwatched(const struct profiles *profiles);

/* The bytes that all rules together save a second process. */
uint64_t profiles_saved(const struct profiles *profiles);

/* What was learned, as a table for people and as rules. */
void profiles_table(FILE *out, const struct profiles *profiles);
void profiles_rules(FILE *out, const struct profiles *profiles);
