/*
 * symbol.h - function, file and line of a frame, by libdw.
 *
 * The processes are dead, so all of it comes from files: the module that the frame names if it is
 * still the one that ran (by build id), else a debug file of that build id. Debug files are
 * searched first in a directory that the caller names, then beside the module, below its .debug/
 * and below /usr/lib/debug. Each module is opened once, and each frame is looked up once. Results
 * live until symbol_close; of a Python frame, as long as the frame does.
 */
#pragma once

#include "logs/logs.h"

/* Names are NULL, lines 0 where they are not known. */
struct symbol_place {
    char *function;        /* demangled, with its parameters */
    char *bare;            /* demangled, without its parameters */
    const char *plain;     /* as the linker knows it */
    const char *file;      /* as it was given to the compiler */
    const char *directory; /* in which the compiler ran: where a relative `file` begins */
    unsigned line;
};

struct symbol {
    struct symbol_place *places; /* innermost first: all but the last were inlined */
    size_t count;                /* at least 1 */
    const char *note;            /* why no more is known: "replaced since"; or NULL */
};

struct symbols;

/* `directory` has further debug files; NULL: there are none. */
struct symbols *symbol_open(const char *directory);
void symbol_close(struct symbols *symbols);
const struct symbol *symbol_find(struct symbols *symbols, const struct log_frame *frame);
/* Whether the frame's module has a function or an object of this name, as the linker knows it. */
bool symbol_defines(struct symbols *symbols, const struct log_frame *frame, const char *name);
/* The path of the place's source file, absolute if known; malloc'ed. NULL: there is none. */
char *symbol_path(const struct symbol_place *place);

/* --- short_name.c: a function's name at a length that a person reads --- */

#define SHORT_NAME_MAX 100

/* The demangled name, malloc'ed. One longer than SHORT_NAME_MAX loses the text in the parentheses
 * of its parameters; then, if need be, the text in the angle brackets of its template arguments;
 * then its end. Each is replaced by "...". */
char *short_name_function(const char *name);
