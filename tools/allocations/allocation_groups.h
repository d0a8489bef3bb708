/*
 * allocation_groups.h - the allocations of a run, in groups that a rule can take.
 *
 * A rule knows an allocation by program, size, device and caller; allocations that are equal in
 * these are alike. It also knows the allocation's index among the alike ones of its process. So a
 * group is a range of indices of alike allocations: as long as they come from one place of the
 * program in every process. Groups of alike allocations never overlap, so each is the subject of
 * one rule.
 *
 * Groups with higher indices come first where rules are written. An allocation that an earlier rule
 * takes does not count for a later one, but here it comes after all that the later one takes. So
 * every rule is right with any of the others left out. Strings and stacks are those of the lines.
 */
#pragma once

#include "logs/logs.h"
#include "symbols/symbol.h"

struct allocation_group {
    const struct log_line *first; /* the first in time */
    const struct log_stack *stack;
    size_t number;        /* from 1, by time */
    size_t alike;         /* the number of the first alike one: so equal for alike ones */
    uint64_t index, last; /* among the alike ones; both inclusive */
    uint64_t count;       /* allocations of all processes */
    size_t process_count;
    bool ruled; /* whether a rule can take it */
};

struct allocation_groups {
    struct log_line **lines;
    size_t line_count;
    struct allocation_group *list; /* by time */
    size_t count;
    uint64_t allocations, bytes, processes;
    bool cut; /* a log was full before its process ended */
};

/* A log_line_fn, for groups of which all is 0. */
const char *allocation_groups_add(void *groups, const char *text, size_t length);
/* From all lines. */
void allocation_groups_make(struct allocation_groups *groups);
void allocation_groups_free(struct allocation_groups *groups);

/* Whether the group's program allocates on one device only, so that its rules need none. */
bool allocation_groups_one_device(const struct allocation_groups *groups,
                                  const struct allocation_group *group);

/* allocation_groups_print.c: a configuration that takes every group, explained in its comments. */
void allocation_groups_text(FILE *out, const struct allocation_groups *groups,
                            struct symbols *symbols);
/* And there: an array of groups. */
void allocation_groups_json(FILE *out, const struct allocation_groups *groups,
                            struct symbols *symbols);

/* allocation_groups_rule.c: the group's section, and the order of the groups' rules. */
#define ALLOCATION_GROUP_NAME_BYTES 43
void allocation_group_name(const struct allocation_group *group,
                           char name[ALLOCATION_GROUP_NAME_BYTES]);
void allocation_group_rule(FILE *out, const struct allocation_groups *groups,
                           const struct allocation_group *group);
/* An array of groups->count, malloc'ed. */
const struct allocation_group **allocation_groups_order(const struct allocation_groups *groups);
