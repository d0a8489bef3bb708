/*
 * tool.h - the verbs of the command-line tool: their tables, messages and memory.
 *
 * A verb is one row in GPS_VERBS and one constant struct tool_verb in a file of its name. Its
 * getopt_long tables, its help and its usage errors are made from that struct, so they cannot
 * disagree. A verb never sees argv: it gets its options and operands, counted and checked.
 *
 * The tool is an ordinary program: it uses stdio and malloc, and ends with a message when memory
 * runs out. What nearly every file of it needs of the system comes with this header, so a file that
 * includes it names none of these again.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The verbs, in the order of the help. */
#define GPS_VERBS(ROW)                                                                             \
    ROW(run)                                                                                       \
    ROW(learn)                                                                                     \
    ROW(audit)                                                                                     \
    ROW(ls)                                                                                        \
    ROW(show)                                                                                      \
    ROW(top)                                                                                       \
    ROW(metrics)                                                                                   \
    ROW(events)                                                                                    \
    ROW(report)                                                                                    \
    ROW(timeline)                                                                                  \
    ROW(explain)                                                                                   \
    ROW(pair)                                                                                      \
    ROW(check)                                                                                     \
    ROW(keeper)                                                                                    \
    ROW(merge)                                                                                     \
    ROW(suspend)                                                                                   \
    ROW(resume)                                                                                    \
    ROW(drop)                                                                                      \
    ROW(forget)                                                                                    \
    ROW(gc)                                                                                        \
    ROW(cdi)                                                                                       \
    ROW(doctor)                                                                                    \
    ROW(help)

#define TOOL_OPTIONS_MAX 14

enum tool_status {
    TOOL_OK = 0,
    TOOL_FAILED = 1,
    TOOL_USAGE = 2,
    TOOL_BLIND = 3, /* `audit`, `report`: something was not watched, or could not be read */
    TOOL_COMMAND_FAILED = 4, /* `learn --check`: the command failed, and there is no other result */
    TOOL_RUN_FAILED = 125,   /* `run` itself failed; the number is that of env and timeout */
    TOOL_CANNOT_EXECUTE = 126,
    TOOL_NOT_FOUND = 127,
};

struct tool_option {
    const char *name;     /* without its dashes; NULL ends the list */
    char letter;          /* 0: none */
    const char *argument; /* its name in the help; NULL: the option takes none */
    const char *help;     /* NULL: the option is internal, and not listed */
};

struct tool_given {
    int option;
    const char *value;
};

struct tool_args {
    const char *values[TOOL_OPTIONS_MAX]; /* by index of the option: NULL not given, "" given */
    struct tool_given *given;             /* all of them, for an option that may be repeated */
    size_t given_count;
    char **operands; /* ends with NULL */
    int operand_count;
    bool separated; /* "--" stood before the operands */
};

struct tool_verb {
    const char *name;
    const char *operands;                             /* for the usage line; "": it takes none */
    const char *summary;                              /* one line, no full stop */
    const char *details;                              /* further lines of --help */
    struct tool_option options[TOOL_OPTIONS_MAX + 1]; /* --help is not listed: every verb has it */
    int operands_min, operands_max;
    bool command;       /* the first operand starts a command line with options of its own */
    int usage_status;   /* of a usage error; 0: TOOL_USAGE */
    void (*help)(void); /* NULL: the help is made from this struct */
    int (*run)(const struct tool_args *args);
};

#define TOOL_DECLARE_VERB(id) extern const struct tool_verb tool_verb_##id;
GPS_VERBS(TOOL_DECLARE_VERB)
#undef TOOL_DECLARE_VERB

/* Parses argv[1..] by the verb's table and runs the verb; prints --help and usage errors itself. */
int tool_call(const struct tool_verb *verb, int argc, char **argv);
void tool_help(const struct tool_verb *verb);
/* Prints one line for each option, aligned; --help is the last. */
void tool_help_options(const struct tool_verb *verb);

/* Print "gpushare: ls: ..." on stderr, with the name of the verb that runs. An error is false, for
 * the caller to return. */
bool tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "file:line: message" on stderr, as compilers do. Line 0: the message is about the whole
 * file. It is a gps_config_error_fn. */
void tool_error_in(void *arg, const char *file, unsigned line, const char *message);

/* Reallocates an array of `count` elements; NULL starts one. Exits when there is no memory. */
void *tool_resize(void *array, size_t count, size_t element);
/* Allocates an array whose bytes are 0. Exits when there is no memory. */
void *tool_zeroed(size_t count, size_t element);
/* Makes room for an element behind `count`: the array doubles at powers of two. An empty one is
 * NULL. */
void *tool_grow(void *array, size_t count, size_t element);
/* Puts a value behind an array that has `count` elements, and counts it. */
#define TOOL_APPEND(array, count, ...)                                                             \
    do {                                                                                           \
        (array) = tool_grow((array), (count), sizeof(*(array)));                                   \
        (array)[(count)++] = (__VA_ARGS__);                                                        \
    } while (0)
/* Sorts an array, which may be empty, as qsort does. */
#define TOOL_SORT(array, count, order)                                                             \
    do {                                                                                           \
        if ((count) > 1)                                                                           \
            qsort((array), (count), sizeof(*(array)), (order));                                    \
    } while (0)
/* Goes through an array, which may be empty and is not changed: `item` points to each element. */
#define TOOL_EACH(type, item, array, count)                                                        \
    for (type *item = (array), *item##_end = (count) ? item + (count) : item; item != item##_end;  \
         item++)
/* A local pointer whose memory is freed at the end of its block. */
#define TOOL_TEMP __attribute__((cleanup(tool_free)))
static inline void tool_free(void *place) {
    void *memory;
    memcpy(&memory, place, sizeof(memory));
    free(memory);
}

/* A copy, malloc'ed; NULL for NULL. */
char *tool_copy(const char *string);
/* The string, or another one where it is NULL. */
static inline const char *tool_or(const char *string, const char *other) {
    return string ? string : other;
}
/* Compares as a function for qsort must. */
static inline int tool_compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}
/* Adds an item to a list "a, b", which is malloc'ed; an empty list is NULL. */
void tool_list(char **list, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The path made absolute without resolving links; malloc'ed. NULL: errno says why. */
char *tool_absolute(const char *path);
/* Formats a text of any length; malloc'ed. */
char *tool_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *tool_vformat(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
/* What `make` (tool_vformat, term_format) makes of the arguments behind `format`, the last one that
 * this function names. */
#define TOOL_VARIADIC(make, format)                                                                \
    ({                                                                                             \
        va_list args_;                                                                             \
        va_start(args_, format);                                                                   \
        __typeof__(make(format, args_)) made_ = make(format, args_);                               \
        va_end(args_);                                                                             \
        made_;                                                                                     \
    })
/* Reads an open file to its end; malloc'ed, with a NUL behind it. An unreadable part is missing. */
char *tool_read(int file, size_t *size);
/* Gets the first line of a file that begins so, without its newline. False: there is none. */
bool tool_read_line(const char *path, const char *begin, char *line, int size);
void tool_no_memory(void) __attribute__((noreturn));
