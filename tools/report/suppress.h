/*
 * suppress.h - the findings that a report leaves out, from an INI file of the user's.
 *
 *     [suppress NAME]
 *     finding = double-free
 *     module = libold.so*
 *     function = Pool::release*
 *
 * A section matches a finding when all of its keys do. `finding` is an id, the others are globs.
 * `module` is a glob on a module's file name, of a Python frame on its source's, and `function` one
 * on a function's name (as shown, without its parameters, or as the linker knows it); both must
 * match in one frame of the finding's stack or of an earlier event's. `name` is a glob on the
 * region's name, `command` one on the command of the first process. `stack` is the hash of all
 * functions of the stack (user_frame_hash): so a section that has it hides one caller's finding and
 * no other's.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "logs/aggregate.h"
#include "symbols/symbol.h"

enum suppress_key {
    SUPPRESS_FINDING,
    SUPPRESS_MODULE,
    SUPPRESS_FUNCTION,
    SUPPRESS_NAME,
    SUPPRESS_COMMAND,
    SUPPRESS_STACK,
    SUPPRESS_KEY_COUNT,
};

struct suppression {
    char *title; /* as written: "suppress NAME" */
    unsigned line;
    char *keys[SUPPRESS_KEY_COUNT]; /* NULL: not given */
    bool used;                      /* it has matched a finding */
};

struct suppressions {
    const char *file; /* as it was given */
    struct suppression *sections;
    size_t count;
};

/* False: there are none, and stderr has every error of the file. */
bool suppress_read(struct suppressions *suppressions, const char *path);
/* 0, or -EINVAL after `fn` was called for every error; then there are none. The text is written to,
 * with one byte behind its `count`. */
int suppress_parse(struct suppressions *suppressions, const char *file, char *text, size_t count,
                   gps_config_error_fn *fn, void *arg);
void suppress_free(struct suppressions *suppressions);

/* Whether the catalogue has the finding; the log of a newer library can hold others. */
bool suppress_knows(const char *finding);
/* The id that this one may be meant to be; NULL: none is near. */
const char *suppress_nearest(const char *finding);

#define SUPPRESS_HASH_DIGITS 16

/* suppress_apply.c: marks the groups that a section matches. */
void suppress_aggregate(struct suppressions *suppressions, struct aggregate *aggregate,
                        struct symbols *symbols);

/* And there: a section for each group that is not suppressed. */
void suppress_print(FILE *out, const struct aggregate *aggregate, struct symbols *symbols);
