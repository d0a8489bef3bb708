/* check_warnings.c - see check_warnings.h. */
#include "check_warnings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "config/option.h"
#include "config/rule.h"
#include "config/value.h"

struct check {
    const char *file;
    const struct gps_config *config;
};

static void warn(const struct check *check, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void warn(const struct check *check, unsigned line, const char *format, ...) {
    char *message;
    va_list args;
    va_start(args, format);
    if (vasprintf(&message, format, args) < 0)
        tool_no_memory();
    va_end(args);
    term_line(stderr, "%s:%u: warning: %s", check->file, line, message);
    free(message);
}

/* --- an import and its exporters --- */

/* Makes a glob of the name: each placeholder may be any number. */
static void name_glob(const struct gps_rule *rule, char glob[GPS_NAME_BYTES]) {
    const char *at = rule->name;
    while (*at != 0) {
        *glob++ = *at == '{' ? '*' : *at;
        at = *at == '{' ? strchr(at, '}') + 1 : at + 1;
    }
    *glob = 0;
}

static bool names_meet(const struct gps_rule *a, const struct gps_rule *b) {
    char left[GPS_NAME_BYTES], right[GPS_NAME_BYTES];
    name_glob(a, left);
    name_glob(b, right);
    return gps_glob_match(left, b->name) || gps_glob_match(right, a->name);
}

static bool exports(const struct gps_rule *rule) {
    return rule->role == GPS_ROLE_EXPORT || rule->role == GPS_ROLE_AUTO;
}

static struct printable range_text(const struct gps_rule *rule) {
    struct printable range = {""};
    struct gps_text text = GPS_TEXT(range.text);
    gps_value_range_text(rule->size_min, rule->size_max, &text);
    return range;
}

/* Why the two sides never meet; malloc'ed. NULL: they may. */
static char *parting(const struct gps_rule *import, const struct gps_rule *export) {
    if (import->size_min > export->size_max)
        return tool_format("size = %s here asks for more than size = %s of line %u exports",
                           range_text(import).text, range_text(export).text, export->line);
    if (import->device_kind == GPS_DEVICE_UUID && export->device_kind == GPS_DEVICE_UUID &&
        memcmp(import->device_uuid, export->device_uuid, GPS_UUID_BYTES) != 0)
        return tool_format("device here is another GPU than that of line %u", export->line);
    if (import->backing != export->backing)
        return tool_format("backing = %s here and %s in line %u: give both the same",
                           import->backing == GPS_RULE_VMM ? "vmm" : "legacy",
                           export->backing == GPS_RULE_VMM ? "vmm" : "legacy", export->line);
    return NULL;
}

static void check_import(const struct check *check, const struct gps_rule *import) {
    char *why = NULL;
    bool exported = false;
    for (size_t i = 0; i < check->config->rule_count; i++) {
        const struct gps_rule *export = &check->config->rules[i];
        if (!exports(export) || !names_meet(import, export))
            continue;
        char *this = parting(import, export);
        exported = true;
        free(why);
        why = this;
        if (!why)
            break;
    }
    if (!exported)
        warn(check, import->line,
             "[region %s] is imported, and no rule of this file exports it: give the exporting "
             "program a rule of this name with role = export",
             import->name);
    else if (why)
        warn(check, import->line, "[region %s] cannot be imported: %s", import->name, why);
    free(why);
}

/* --- a rule that another hides --- */

/* Whether a key of the earlier rule leaves nothing to the later. */
static bool glob_covers(const char *earlier, const char *later) {
    return strspn(earlier, "*") == strlen(earlier) || strcmp(earlier, later) == 0;
}

static bool device_covers(const struct gps_rule *earlier, const struct gps_rule *later) {
    if (earlier->device_kind == GPS_DEVICE_ANY)
        return true;
    return earlier->device_kind == later->device_kind &&
           earlier->device_ordinal == later->device_ordinal &&
           memcmp(earlier->device_uuid, later->device_uuid, GPS_UUID_BYTES) == 0;
}

static bool takes_pools(const struct gps_rule *rule) {
    return rule->backing == GPS_RULE_VMM || rule->role == GPS_ROLE_MERGE;
}

/* Whether the earlier rule fits each allocation that the later fits, the program aside. */
static bool fits_all(const struct gps_rule *earlier, const struct gps_rule *later) {
    return glob_covers(earlier->caller, later->caller) && device_covers(earlier, later) &&
           earlier->size_min <= later->size_min && later->size_max <= earlier->size_max &&
           (takes_pools(earlier) || !takes_pools(later));
}

static bool hides(const struct gps_rule *earlier, const struct gps_rule *later) {
    return earlier->index_min == 0 && earlier->index_max == UINT64_MAX &&
           glob_covers(earlier->program, later->program) && fits_all(earlier, later);
}

/* Whether the importing program would export the region itself. */
static bool exports_first(const struct gps_rule *earlier, const struct gps_rule *later) {
    return earlier->role == GPS_ROLE_EXPORT && later->role == GPS_ROLE_IMPORT &&
           names_meet(earlier, later) && gps_glob_match(earlier->program, later->program) &&
           fits_all(earlier, later);
}

static void check_hidden(const struct check *check, const struct gps_rule *rule) {
    for (const struct gps_rule *earlier = check->config->rules; earlier < rule; earlier++)
        if (hides(earlier, rule)) {
            warn(check, rule->line,
                 "[region %s] matches nothing: [region %s] in line %u takes all that it fits; put "
                 "this one before it",
                 rule->name, earlier->name, earlier->line);
            return;
        } else if (exports_first(earlier, rule)) {
            warn(check, rule->line,
                 "[region %s] in line %u is for program = %s, too, which would export and not "
                 "import it: put this one before it",
                 earlier->name, earlier->line, rule->program);
            return;
        }
}

/* A file name may have a blank, but few do. */
static void check_program(const struct check *check, const struct gps_rule *rule) {
    if (strchr(rule->program, ' '))
        warn(check, rule->line,
             "program = %s has a blank: the name of a program is matched, and not its command "
             "line: cam.py for `python3 cam.py --gpu 0`; GPUSHARE_PROGRAM gives processes names "
             "of their own",
             rule->program);
}

/* --- keys without effect --- */

static void check_keys(const struct check *check, const struct gps_rule *rule) {
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_REGION); key->name; key++) {
        const bool given = rule->given >> gps_key_place(key) & 1;
        const char *why = given ? gps_rule_unused(rule, key->name) : NULL;
        if (why)
            warn(check, rule->line, "%s has no effect in [region %s]: %s", key->name, rule->name,
                 why);
    }
}

/* --- options --- */

/* The line in which the file has the key; 0: it does not have it. */
static unsigned line_of(const struct check *check, const char *key) {
    return check->config->lines[gps_key_place(gps_key_find(GPS_SECTION_OPTIONS, key))];
}

/* Only a program knows where a relative path starts, and what %p and %c are: nothing is said of
 * those. */
static void check_log(const struct check *check, const char *key, const char *log) {
    size_t length = strcspn(log, "%");
    while (length > 0 && log[length - 1] != '/')
        length--;
    char *directory = tool_format("%.*s", (int)length, log);
    if (log[0] == '/' && access(log, W_OK) != 0 &&
        (errno != ENOENT || access(directory, W_OK | X_OK) != 0))
        warn(check, line_of(check, key), "%s cannot be written in %s: %s", key, directory,
             strerror(errno));
    free(directory);
}

static void check_options(const struct check *check) {
    const struct gps_options *options = &check->config->options;
    const unsigned timeout = line_of(check, "free_timeout");
    if (timeout && options->on_free != GPS_FREE_WAIT)
        warn(check, timeout, "free_timeout has no effect: it is for on_free = wait");
    if (options->mode != GPS_MODE_SHARE && check->config->rule_count > 0)
        warn(check, line_of(check, "mode"), "mode = %s: no rule is followed",
             options->mode == GPS_MODE_AUDIT ? "audit" : "off");
    check_log(check, "log", options->log);
    check_log(check, "event_log", options->event_log);
}

void check_warn(const char *file, const struct gps_config *config) {
    const struct check check = {file, config};
    check_options(&check);
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (rule->role == GPS_ROLE_IMPORT)
            check_import(&check, rule);
        check_program(&check, rule);
        check_hidden(&check, rule);
        check_keys(&check, rule);
    }
}
