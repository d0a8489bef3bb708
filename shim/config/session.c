/*
 * session.c - reads one configuration: stores sections and keys in a struct gps_config.
 *
 * Sections and keys arrive one by one from inifile.c. The errors of a key are reported at once,
 * those of a section at its end, and those between sections at the end of the file.
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inifile.h"
#include "rule.h"
#include "util/text.h"

/* Bounds the time that comparing all rules with each other takes. */
#define RULES_MAX 4096u

struct gps_session gps_session_begin(struct gps_config *config, gps_config_error_fn *fn,
                                     void *arg) {
    gps_session_reset(config);
    return (struct gps_session){.config = config, .fn = fn, .arg = arg, .file = ""};
}

void gps_session_reset(struct gps_config *config) {
    memset(config, 0, sizeof(*config));
    gps_keys_default(GPS_SECTION_OPTIONS, &config->options, sizeof(config->options));
}

int gps_session_end(struct gps_session *session) {
    if (!session->no_memory && session->errors == 0)
        return 0;
    free(session->config->rules);
    gps_session_reset(session->config);
    return session->no_memory ? -ENOMEM : -EINVAL;
}

/* --- errors --- */

void gps_session_fail(struct gps_session *session, unsigned line, const char *message) {
    session->errors++;
    if (session->fn)
        session->fn(session->arg, session->file, line, message);
}

static void on_error(void *arg, unsigned line, const char *message) {
    gps_session_fail(arg, line, message);
}

/* "[name] what", and where it was first when `first` is a line. */
static void fail_section(struct gps_session *session, unsigned line, const char *name,
                         unsigned first, const char *what) {
    char buffer[384];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_str(&text, "[");
    gps_text_plain(&text, name);
    gps_text_strs(&text, "] ", what);
    if (first != 0) {
        gps_text_str(&text, "; it was first in line ");
        gps_text_dec(&text, first);
    }
    gps_session_fail(session, line, buffer);
}

static void region_title(const struct gps_rule *rule, char title[64]) {
    struct gps_text text = gps_text_on(title, 64);
    gps_text_strs(&text, rule->name[0] != '\0' ? "region " : "region", rule->name);
}

/* As much of a value as an error can show. */
static void add_value(struct gps_text *text, const char *value) {
    char shown[64];
    struct gps_text cut = GPS_TEXT(shown);
    gps_text_str(&cut, value);
    gps_text_plain(text, shown);
    gps_text_str(text, cut.cut ? "..." : "");
}

/* "mode = shared: not allowed; one of share, audit, off" */
void gps_session_fail_value(struct gps_session *session, unsigned line, const struct gps_key *key,
                            const char *value, const char *wrong) {
    char buffer[384];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_str(&text, key->name);
    if (*value != '\0') {
        gps_text_str(&text, " = ");
        add_value(&text, value);
    }
    gps_text_strs(&text, ": ", wrong, "; ");
    gps_key_allowed(key, &text);
    gps_session_fail(session, line, buffer);
}

/* "wiat: unknown key, did you mean wait?; a region has ..." */
static void fail_unknown(struct gps_session *session, unsigned line, enum gps_section section,
                         const char *name) {
    char buffer[512];
    struct gps_text text = GPS_TEXT(buffer);
    add_value(&text, name);
    gps_text_str(&text, ": ");
    gps_key_unknown(section, name, &text);
    gps_session_fail(session, line, buffer);
}

static void fail_twice(struct gps_session *session, unsigned line, const char *name,
                       unsigned first) {
    char buffer[128];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_strs(&text, name, ": given twice in this section; it was first in line ");
    gps_text_dec(&text, first);
    gps_session_fail(session, line, buffer);
}

/* --- sections --- */

static struct gps_rule *current_rule(struct gps_session *session) {
    return &session->config->rules[session->config->rule_count - 1];
}

static void fail_missing(struct gps_session *session, const char *title,
                         const struct gps_key *key) {
    char buffer[128];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_strs(&text, "has no ", key->name, "; ");
    gps_key_allowed(key, &text);
    fail_section(session, current_rule(session)->line, title, 0, buffer);
}

/* Reports the errors that show only when all keys of a section are known. */
static void end_section(struct gps_session *session) {
    struct gps_keys keys = gps_keys_of(GPS_SECTION_REGION);
    if (session->section != GPS_IN_RULE)
        return;
    char title[64];
    region_title(current_rule(session), title);
    for (size_t i = 0; i < keys.count; i++)
        if (!keys.first[i].fallback && session->given[i] == 0)
            fail_missing(session, title, &keys.first[i]);
    const char *wrong = gps_rule_check(current_rule(session));
    if (wrong)
        fail_section(session, current_rule(session)->line, title, 0, wrong);
}

static bool grow(struct gps_session *session) {
    struct gps_config *config = session->config;
    if (config->rule_count < session->capacity)
        return true;
    size_t capacity = session->capacity == 0 ? 8 : session->capacity * 2;
    struct gps_rule *rules = realloc(config->rules, capacity * sizeof(*rules));
    if (!rules) {
        session->no_memory = true;
        return false;
    }
    config->rules = rules;
    session->capacity = capacity;
    return true;
}

/* Room for one more rule. Too many rules are reported once. */
static bool make_room(struct gps_session *session, unsigned line) {
    if (session->config->rule_count < RULES_MAX)
        return grow(session);
    if (!session->full)
        gps_session_fail(session, line, "more than 4096 regions in one file");
    session->full = true;
    return false;
}

static void check_name(struct gps_session *session, const char *name) {
    const char *wrong = gps_rule_check_name(name);
    if (!wrong)
        return;
    char title[64];
    region_title(current_rule(session), title);
    char buffer[160];
    struct gps_text text = GPS_TEXT(buffer);
    gps_text_strs(&text, "the name ", wrong,
                  "; 1 to 42 of A-Z a-z 0-9 . _ - {n} {device}, no dot first");
    fail_section(session, current_rule(session)->line, title, 0, buffer);
}

/* A bad name is reported, and the keys below it are checked all the same. */
static void begin_rule(struct gps_session *session, unsigned line, const char *name) {
    if (!make_room(session, line))
        return;
    session->config->rule_count++;
    gps_keys_default(GPS_SECTION_REGION, current_rule(session), sizeof(struct gps_rule));
    current_rule(session)->line = line;
    struct gps_text text = gps_text_on(current_rule(session)->name, GPS_SECTION_BYTES);
    gps_text_str(&text, name);
    session->section = GPS_IN_RULE;
    check_name(session, name);
}

/* The NAME of "region NAME"; NULL when the section is not a region's. */
static const char *region_name(const char *section) {
    static const char word[] = "region";
    if (strncmp(section, word, sizeof(word) - 1) != 0)
        return NULL;
    section += sizeof(word) - 1;
    if (*section != '\0' && *section != ' ' && *section != '\t')
        return NULL;
    return section + strspn(section, " \t");
}

static void on_section(void *arg, unsigned line, const char *name) {
    struct gps_session *session = arg;
    end_section(session);
    memset(session->given, 0, sizeof(session->given));
    session->section = GPS_IN_REFUSED;
    if (!name)
        return;
    if (strcmp(name, "gpushare") == 0) {
        session->section = GPS_IN_OPTIONS;
        if (session->options_line != 0)
            fail_section(session, line, name, session->options_line, "is given twice");
        else
            session->options_line = line;
    } else if (region_name(name) != NULL) {
        begin_rule(session, line, region_name(name));
    } else {
        fail_section(session, line, name, 0, "unknown section; [gpushare] or [region NAME]");
    }
}

/* --- keys --- */

static void set_key(struct gps_session *session, unsigned line, const struct gps_key *key,
                    const char *value) {
    bool in_rule = session->section == GPS_IN_RULE;
    void *target = in_rule ? (void *)current_rule(session) : (void *)&session->config->options;
    size_t place = gps_key_place(key);
    const char *wrong = gps_key_set(key, target, value);
    if (session->given[place] != 0)
        fail_twice(session, line, key->name, session->given[place]);
    else
        session->given[place] = line;
    if (wrong)
        gps_session_fail_value(session, line, key, value, wrong);
    else if (!in_rule)
        session->config->from_file |= 1u << place;
}

static void on_key(void *arg, unsigned line, const char *name, const char *value) {
    struct gps_session *session = arg;
    enum gps_section section =
        session->section == GPS_IN_RULE ? GPS_SECTION_REGION : GPS_SECTION_OPTIONS;
    const struct gps_key *key = gps_key_find(section, name);
    if (session->section == GPS_IN_NONE)
        gps_session_fail(session, line,
                         "a key outside a section; [gpushare] or [region NAME] must precede it");
    else if (session->section == GPS_IN_REFUSED)
        return;
    else if (!key)
        fail_unknown(session, line, section, name);
    else
        set_key(session, line, key, value);
}

static void check_repeats(struct gps_session *session) {
    const struct gps_rule *rules = session->config->rules;
    for (size_t i = 1; i < session->config->rule_count; i++) {
        size_t first = 0;
        while (first < i && !gps_rule_repeats(&rules[first], &rules[i]))
            first++;
        if (first == i)
            continue;
        char title[64];
        region_title(&rules[i], title);
        fail_section(session, rules[i].line, title, rules[first].line,
                     "is given twice with one role and program");
    }
}

void gps_session_read(struct gps_session *session, const char *file, const char *bytes,
                      size_t count) {
    const struct gps_ini_events events = {.headers = "[gpushare] or [region NAME]",
                                          .header_words = sizeof("region ") - 1,
                                          .section = on_section,
                                          .key = on_key,
                                          .error = on_error,
                                          .arg = session};
    session->file = file;
    gps_ini_read(bytes, count, &events);
    end_section(session);
    if (!session->no_memory)
        check_repeats(session);
}
