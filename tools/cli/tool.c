/*
 * tool.c - parses a verb's command line, and prints its help and usage errors, by its table.
 *
 * Every text about options is generated from the same rows that getopt_long gets. A usage error is
 * one line on stderr that lists the allowed options.
 */
#include "tool.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "util/nearest.h"
#include "wrap.h"

#define OPTION_BASE 256 /* getopt value of option 0: above every letter */
#define OPTION_HELP (OPTION_BASE + TOOL_OPTIONS_MAX)
#define READ_BYTES  (1 << 16)

static const struct tool_verb *running; /* the verb that messages name */

/* Prints a message; where memory has run out, that it has. */
static void print_message(const char *format, ...) {
    char *line;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&line, format, args);
    va_end(args);
    fflush(stdout);
    wrap_line(stderr, length < 0 ? "gpushare: out of memory" : line);
    free(length < 0 ? NULL : line);
}

static void tool_message(const char *kind, const char *format, va_list args) {
    const bool named = running && running->name;
    TOOL_TEMP char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    print_message("gpushare: %s%s%s%s", named ? running->name : "", named ? ": " : "", kind,
                  tool_or(text, "out of memory"));
}

bool tool_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    tool_message("", format, args);
    va_end(args);
    return false;
}

void tool_warn(const char *format, ...) {
    va_list args;
    va_start(args, format);
    tool_message("warning: ", format, args);
    va_end(args);
}

void tool_error_in(void *arg, const char *file, unsigned line, const char *text) {
    (void)arg;
    if (line > 0)
        print_message("%s:%u: %s", file, line, text);
    else
        print_message("%s: %s", file, text);
}

void tool_no_memory(void) {
    tool_error("out of memory");
    exit(running && running->usage_status != 0 ? running->usage_status : TOOL_FAILED);
}

void *tool_resize(void *array, size_t count, size_t element) {
    void *room = count > SIZE_MAX / element ? NULL : realloc(array, count * element);
    if (!room)
        tool_no_memory();
    return room;
}

void *tool_zeroed(size_t count, size_t element) {
    void *room = calloc(count, element);
    if (!room)
        tool_no_memory();
    return room;
}

void *tool_grow(void *array, size_t count, size_t element) {
    if (count == 0)
        return tool_resize(array, 8, element);
    if (count < 8 || (count & (count - 1)) != 0)
        return array;
    return tool_resize(array, 2 * count, element);
}

char *tool_copy(const char *string) {
    if (!string)
        return NULL;
    size_t size = strlen(string) + 1;
    return memcpy(tool_resize(NULL, size, 1), string, size);
}

char *tool_vformat(const char *format, va_list args) {
    char *text;
    if (vasprintf(&text, format, args) < 0)
        tool_no_memory();
    return text;
}

char *tool_format(const char *format, ...) {
    return TOOL_VARIADIC(tool_vformat, format);
}

void tool_list(char **list, const char *format, ...) {
    TOOL_TEMP char *before = *list, *item = TOOL_VARIADIC(tool_vformat, format);
    *list = tool_format("%s%s%s", before ? before : "", before ? ", " : "", item);
}

char *tool_absolute(const char *path) {
    char here[PATH_MAX];
    if (path[0] == '/')
        return tool_copy(path);
    return getcwd(here, sizeof(here)) ? tool_format("%s/%s", here, path) : NULL;
}

char *tool_read(int file, size_t *size) {
    char *text = NULL;
    ssize_t count;
    *size = 0;
    do {
        text = tool_resize(text, *size + READ_BYTES, 1);
        count = read(file, text + *size, READ_BYTES - 1);
        *size += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    text[*size] = 0;
    return text;
}

bool tool_read_line(const char *path, const char *begin, char *line, int size) {
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, size, file))
        found = strncmp(line, begin, strlen(begin)) == 0;
    if (file)
        fclose(file);
    if (found)
        line[strcspn(line, "\n")] = 0;
    return found;
}

/* --- help --- */

static int option_text(const struct tool_option *option, char *text, size_t size) {
    char letter[8] = "    ";
    if (option->letter != 0)
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    return snprintf(text, size, "%s--%s%s%s", letter, option->name, option->argument ? "=" : "",
                    option->argument ? option->argument : "");
}

void tool_help_options(const struct tool_verb *verb) {
    static const struct tool_option help = {"help", 'h', NULL, "print this help"};
    char text[64];
    int width = option_text(&help, text, sizeof(text));
    for (const struct tool_option *option = verb->options; option->name; option++) {
        int length = option->help ? option_text(option, text, sizeof(text)) : 0;
        width = length > width ? length : width;
    }
    for (const struct tool_option *option = verb->options; option->name; option++) {
        option_text(option, text, sizeof(text));
        if (!option->help)
            continue;
        printf("  %-*s  ", width, text);
        wrap_text(stdout, option->help, (size_t)width + 4);
    }
    option_text(&help, text, sizeof(text));
    printf("  %-*s  %s\n", width, text, help.help);
}

void tool_help(const struct tool_verb *verb) {
    printf("Usage: gpushare %s [OPTIONS]%s%s\n", verb->name, verb->operands[0] ? " " : "",
           verb->operands);
    TOOL_TEMP char *summary =
        tool_format("%c%s.", toupper((unsigned char)verb->summary[0]), verb->summary + 1);
    wrap_text(stdout, summary, 0);
    putchar('\n');
    wrap_text(stdout, verb->details, 0);
    puts("\nOptions:");
    tool_help_options(verb);
}

/* --- parsing --- */

static void option_complain(const struct tool_verb *verb, int answer, char **argv) {
    char typed[3] = {'-', (char)optopt, 0}, *allowed = NULL;
    const char *option = optopt > 0 && optopt < OPTION_BASE ? typed : argv[optind - 1];
    if (answer == ':') {
        tool_error("option '%s' needs a value; see: gpushare %s --help", option, verb->name);
    } else if (optopt >= OPTION_BASE) {
        tool_error("option '--%s' takes no value",
                   optopt == OPTION_HELP ? "help" : verb->options[optopt - OPTION_BASE].name);
    } else {
        TOOL_TEMP char *word = tool_format("%.*s", (int)strcspn(option, "="), option);
        struct gps_nearest nearest = {.word = word + strspn(word, "-")};
        const char *meant = NULL;
        for (const struct tool_option *known = verb->options; known->name; known++)
            if (known->help) {
                tool_list(&allowed, "--%s", known->name);
                gps_nearest_try(&nearest, known->name);
                if (known->letter && toupper(known->letter) == toupper(optopt))
                    meant = known->name;
            }
        tool_list(&allowed, "--help");
        gps_nearest_try(&nearest, "help");
        meant = option == typed ? meant : nearest.found;
        tool_error("unknown option '%s'%s%s; allowed: %s", option, meant ? ", perhaps --" : "",
                   tool_or(meant, ""), allowed);
        free(allowed);
    }
}

struct getopt_tables {
    struct option longs[TOOL_OPTIONS_MAX + 2];
    char shorts[2 * TOOL_OPTIONS_MAX + 8];
};

static void make_tables(const struct tool_verb *verb, struct getopt_tables *tables) {
    size_t count = 0, letters = 0;
    *tables = (struct getopt_tables){0};
    if (verb->command)
        tables->shorts[letters++] = '+';
    tables->shorts[letters++] = ':';
    tables->shorts[letters++] = 'h';
    for (; verb->options[count].name; count++) {
        const struct tool_option *option = &verb->options[count];
        tables->longs[count] =
            (struct option){option->name, option->argument ? required_argument : no_argument, NULL,
                            OPTION_BASE + (int)count};
        if (option->letter != 0)
            tables->shorts[letters++] = option->letter;
        if (option->letter != 0 && option->argument)
            tables->shorts[letters++] = ':';
    }
    tables->longs[count] = (struct option){"help", no_argument, NULL, OPTION_HELP};
}

static int option_index(const struct tool_verb *verb, int answer) {
    if (answer >= OPTION_BASE)
        return answer - OPTION_BASE;
    int index = 0;
    while (verb->options[index].letter != answer)
        index++;
    return index;
}

static int usage_status(const struct tool_verb *verb) {
    return verb->usage_status != 0 ? verb->usage_status : TOOL_USAGE;
}

/* -1: the verb must run; otherwise the exit status. */
static int verb_parse(const struct tool_verb *verb, int argc, char **argv, struct tool_args *args) {
    struct getopt_tables tables;
    make_tables(verb, &tables);
    opterr = 0;
    optind = 0; /* glibc: start anew, and read a leading `+` */
    for (int answer; (answer = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1;) {
        if (answer == '?' || answer == ':') {
            option_complain(verb, answer, argv);
            return usage_status(verb);
        }
        if (optarg && strcmp(optarg, "--") == 0) {
            tool_error("option '--%s' needs a value; see: gpushare %s --help",
                       verb->options[option_index(verb, answer)].name, verb->name);
            return usage_status(verb);
        }
        if (answer == 'h' || answer == OPTION_HELP) {
            verb->help ? verb->help() : tool_help(verb);
            return TOOL_OK;
        }
        const int option = option_index(verb, answer);
        args->values[option] = optarg ? optarg : "";
        TOOL_APPEND(args->given, args->given_count,
                    (struct tool_given){option, args->values[option]});
    }
    args->operands = argv + optind;
    args->operand_count = argc - optind;
    args->separated = optind > 1 && strcmp(argv[optind - 1], "--") == 0;
    return -1;
}

static int call(const struct tool_verb *verb, const struct tool_args *args) {
    if (args->operand_count < verb->operands_min) {
        tool_error("an argument is missing; usage: gpushare %s [OPTIONS] %s", verb->name,
                   verb->operands);
    } else if (!verb->command && args->operand_count > verb->operands_max) {
        tool_error("unexpected argument '%s'; usage: gpushare %s [OPTIONS]%s%s",
                   args->operands[verb->operands_max], verb->name, verb->operands[0] ? " " : "",
                   verb->operands);
    } else {
        return verb->run(args);
    }
    return usage_status(verb);
}

int tool_call(const struct tool_verb *verb, int argc, char **argv) {
    static char *none[] = {NULL};
    struct tool_args args = {.operands = none};
    running = verb;
    int status = verb_parse(verb, argc, argv, &args);
    if (status < 0)
        status = call(verb, &args);
    free(args.given);
    return status;
}
