/*
 * suppress.h - the findings that a report leaves out: what an INI file of the user's has, and what
 * the tool itself knows of libraries.
 *
 *     [suppress NAME]
 *     finding = double-free
 *     module = libold.so*
 *     function = Pool::release*
 *
 * A section matches a finding when all of its keys do. `finding` is an id, the others are globs.
 * `module` is a glob on a module's file name, of a Python frame on its source's, and `function` one
 * on a function's name (as shown, without its parameters, or as the linker knows it); both must
 * match in one frame of the finding's stack or of an earlier event's. `callers` is a glob that the
 * module of every frame matches that is the user's (user_frame.h), in the stack that tells the
 * finding from others: so a section that has it hides a library's own doing, and none of a program
 * that calls the library. `name` is a glob on the region's name, `command` one on the command of
 * the first process. `stack` is the hash of all functions of the stack (user_frame_hash): so a
 * section that has it hides one caller's finding and no other's.
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
    SUPPRESS_CALLERS,
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
    const char *known;              /* the tool's own: NAME; NULL: the user's */
};

struct suppressions {
    const char *file; /* the last one, as it was given */
    struct suppression *sections;
    size_t count;
};

/* These add to what there is. First the tool's own sections. */
void suppress_add_known(struct suppressions *suppressions);
/* False: there are none, and stderr has every error of the file. */
bool suppress_read(struct suppressions *suppressions, const char *path);
/* 0, or -EINVAL after `fn` was called for every error; then there are none. The text is written to,
 * with one byte behind its `count`. */
int suppress_parse(struct suppressions *suppressions, const char *file, char *text, size_t count,
                   gps_config_error_fn *fn, void *arg);
void suppress_free(struct suppressions *suppressions);

/* The index of a finding in the catalogue; -1: it is not there, as that of a newer library. */
int suppress_finding(const char *finding);
/* The id that this one may be meant to be; NULL: none is near. */
const char *suppress_nearest(const char *finding);

#define SUPPRESS_HASH_DIGITS 16

/* suppress_apply.c: marks the groups that a section matches. */
void suppress_aggregate(struct suppressions *suppressions, struct aggregate *aggregate,
                        struct symbols *symbols);

/* And there: a section for each group that is not suppressed. */
void suppress_print(FILE *out, const struct aggregate *aggregate, struct symbols *symbols);
