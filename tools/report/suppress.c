/*
 * suppress.c - reads suppressions, and explains every error in them.
 *
 * An error here hides nothing or too much, and the user notices either late. So, as in the
 * configuration, nothing is guessed: a key that is unknown, empty or given twice is an error.
 */
#include "suppress.h"

#include "cli/string_map.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "config/inifile.h"
#include "config/rule.h"
#include "log/log.h"
#include "util/nearest.h"

#define FILE_MAX ((size_t)1 << 20)
#define SECTION  "suppress"
#define KEYS     "finding, module, function, callers, name, command, stack"

static const struct {
    const char *name, *allowed;
} keys[] = {[SUPPRESS_FINDING] = {"finding", "an id of `gpushare explain --list`, as double-free"},
            [SUPPRESS_MODULE] = {"module", "a glob on a file name, as libold.so*"},
            [SUPPRESS_FUNCTION] = {"function", "a glob on a function's name, as Pool::release*"},
            [SUPPRESS_CALLERS] = {"callers", "a glob on a file name, as libold.so*"},
            [SUPPRESS_NAME] = {"name", "a glob on a region's name"},
            [SUPPRESS_COMMAND] = {"command", "a glob on the executable's file name"},
            [SUPPRESS_STACK] = {"stack", "16 hexadecimal digits, as --gen-suppressions prints"}};

struct parser {
    struct suppressions *suppressions;
    const char *file;
    gps_config_error_fn *fn;
    void *arg;
    bool failed;
    struct string_map *titles; /* and their lines */
    enum { OUTSIDE, REFUSED, INSIDE } state;
};

static void suppress_fail(struct parser *parser, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void suppress_fail(struct parser *parser, unsigned line, const char *format, ...) {
    TOOL_TEMP char *plain = TOOL_VARIADIC(term_format, format);
    parser->failed = true;
    parser->fn(parser->arg, parser->file, line, plain);
}

/* --- sections --- */

static struct suppression *current(struct parser *parser) {
    struct suppressions *all = parser->suppressions;
    return &all->sections[all->count - 1];
}

static void suppress_end_section(struct parser *parser) {
    if (parser->state != INSIDE)
        return;
    for (size_t i = 0; i < SUPPRESS_KEY_COUNT; i++)
        if (current(parser)->keys[i])
            return;
    suppress_fail(parser, current(parser)->line,
                  "[%.60s] has no key, and so would suppress everything; "
                  "give one of " KEYS,
                  current(parser)->title);
}

static bool suppress_section_is_named(const char *section) {
    const size_t length = strlen(SECTION);
    return strncmp(section, SECTION, length) == 0 &&
           (section[length] == ' ' || section[length] == '\t');
}

static void begin_section(struct parser *parser, unsigned line, const char *title) {
    struct suppressions *all = parser->suppressions;
    unsigned *first = string_map_make(&parser->titles, title, sizeof(*first));
    if (*first != 0)
        suppress_fail(parser, line, "[%.60s] is given twice; it was first in line %u", title,
                      *first);
    else
        *first = line;
    TOOL_APPEND(all->sections, all->count,
                (struct suppression){.title = tool_copy(title), .line = line});
    parser->state = INSIDE;
}

static void suppress_on_section(void *arg, unsigned line, const char *name) {
    struct parser *parser = arg;
    suppress_end_section(parser);
    parser->state = REFUSED;
    if (name && suppress_section_is_named(name))
        begin_section(parser, line, name);
    else if (name)
        suppress_fail(parser, line, "[%.60s] unknown section; [" SECTION " NAME]", name);
}

/* --- keys --- */

int suppress_finding(const char *id) {
    for (int i = 0; i < GPS_FINDING_COUNT; i++)
        if (strcmp(gps_finding_id((enum gps_finding)i), id) == 0)
            return i;
    return -1;
}

const char *suppress_nearest(const char *finding) {
    struct gps_nearest nearest = {.word = finding};
    for (int i = 0; i < GPS_FINDING_COUNT; i++)
        gps_nearest_try(&nearest, gps_finding_id((enum gps_finding)i));
    return nearest.found;
}

/* NULL: the value can be used. A function's name may have characters that a file's may not. */
static const char *suppress_wrong_with(enum suppress_key key, const char *value) {
    if (value[0] == 0)
        return "no value";
    if (key == SUPPRESS_FINDING)
        return suppress_finding(value) >= 0 ? NULL : "no such finding";
    if (key == SUPPRESS_STACK)
        return strspn(value, "0123456789abcdef") == SUPPRESS_HASH_DIGITS &&
                       value[SUPPRESS_HASH_DIGITS] == 0
                   ? NULL
                   : "no such hash";
    return key == SUPPRESS_FUNCTION ? NULL : gps_glob_check(value);
}

static void suppress_set_key(struct parser *parser, unsigned line, enum suppress_key key,
                             const char *value) {
    char **place = &current(parser)->keys[key];
    const char *wrong = suppress_wrong_with(key, value);
    const char *near = wrong && key == SUPPRESS_FINDING ? suppress_nearest(value) : NULL;
    if (wrong)
        suppress_fail(parser, line, "%s = %.60s: %s%s%s; allowed: %s", keys[key].name, value, wrong,
                      near ? ", but perhaps " : "", tool_or(near, ""), keys[key].allowed);
    if (*place)
        suppress_fail(parser, line, "%s: given twice in this section", keys[key].name);
    else
        *place = tool_copy(value);
}

static void suppress_on_key(void *arg, unsigned line, const char *name, const char *value) {
    struct parser *parser = arg;
    if (parser->state == REFUSED)
        return;
    if (parser->state == OUTSIDE) {
        suppress_fail(parser, line, "a key outside a section; [" SECTION " NAME] must precede it");
        return;
    }
    for (size_t i = 0; i < SUPPRESS_KEY_COUNT; i++)
        if (strcmp(keys[i].name, name) == 0) {
            suppress_set_key(parser, line, (enum suppress_key)i, value);
            return;
        }
    suppress_fail(parser, line, "%.60s: unknown key; allowed: " KEYS, name);
}

static void suppress_on_error(void *arg, unsigned line, const char *message) {
    suppress_fail(arg, line, "%s", message);
}

/* --- files --- */

int suppress_parse(struct suppressions *suppressions, const char *file, char *text, size_t count,
                   gps_config_error_fn *fn, void *arg) {
    struct parser parser = {.suppressions = suppressions, .file = file, .fn = fn, .arg = arg};
    const struct gps_ini_events events = {.headers = "[" SECTION " NAME]",
                                          .section = suppress_on_section,
                                          .key = suppress_on_key,
                                          .error = suppress_on_error,
                                          .arg = &parser};
    suppressions->file = file;
    gps_ini_read(text, count, &events);
    suppress_end_section(&parser);
    string_map_free(&parser.titles, NULL);
    if (!parser.failed)
        return 0;
    suppress_free(suppressions);
    return -EINVAL;
}

bool suppress_read(struct suppressions *suppressions, const char *path) {
    FILE *file = fopen(path, "re");
    TOOL_TEMP char *bytes = tool_resize(NULL, FILE_MAX + 1, 1);
    const size_t count = file ? fread(bytes, 1, FILE_MAX + 1, file) : 0;
    struct parser parser = {.file = path, .fn = tool_error_in};
    if (!file || ferror(file))
        suppress_fail(&parser, 0, "cannot be read: %s", strerror(errno));
    else if (count > FILE_MAX)
        suppress_fail(&parser, 0, "is larger than 1 MiB");
    else
        parser.failed = suppress_parse(suppressions, path, bytes, count, tool_error_in, NULL) != 0;
    if (file)
        fclose(file);
    if (parser.failed)
        suppress_free(suppressions);
    return !parser.failed;
}

/* The suppressions that are part of the tool. */
__asm__(".pushsection .rodata\n"
        "suppress_known_text: .incbin \"config/suppressions.conf\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char suppress_known_text[];

void suppress_add_known(struct suppressions *suppressions) {
    TOOL_TEMP char *text = tool_copy(suppress_known_text);
    (void)suppress_parse(suppressions, "config/suppressions.conf", text, strlen(text),
                         tool_error_in, NULL);
    for (size_t i = 0; i < suppressions->count; i++) {
        const char *name = suppressions->sections[i].title + sizeof(SECTION) - 1;
        suppressions->sections[i].known = name + strspn(name, " \t");
    }
}

void suppress_free(struct suppressions *suppressions) {
    for (size_t i = 0; i < suppressions->count; i++) {
        free(suppressions->sections[i].title);
        for (size_t key = 0; key < SUPPRESS_KEY_COUNT; key++)
            free(suppressions->sections[i].keys[key]);
    }
    free(suppressions->sections);
    *suppressions = (struct suppressions){.file = NULL};
}
