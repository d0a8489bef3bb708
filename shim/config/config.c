/*
 * config.c - finds and reads gpushare.conf and the environment.
 *
 * Sections and keys arrive one by one from inifile.c. The errors of a key are reported at once,
 * those of a section at its end, and those between sections at the end of the file. Reading
 * continues after an error, so that all of them are reported.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inifile.h"
#include "key.h"
#include "rule.h"
#include "util/nearest.h"
#include "util/text.h"
#include "value.h"

/* Bounds the time that comparing all rules with each other takes. */
#define RULES_MAX   4096u
#define RULES_BLOCK 16u /* room is made for so many at once */

/* The reading of one configuration. */
struct session {
    struct gps_config *config;
    gps_config_error_fn *fn; /* may be NULL */
    void *arg;
    const char *file; /* the name in errors */
    unsigned errors;
    bool no_memory;
    bool full; /* the file has more rules than the limit */

    /* The section that is being read. */
    enum { IN_NONE, IN_REFUSED, IN_OPTIONS, IN_RULE } section;
    unsigned options_line; /* where [gpushare] stands; 0: not yet */
};

/* The defaults, without rules. */
static void reset(struct gps_config *config) {
    memset(config, 0, sizeof(*config));
    gps_keys_default(GPS_SECTION_OPTIONS, &config->options, sizeof(config->options));
}

void gps_config_free(struct gps_config *config) {
    free(config->rules);
    reset(config);
}

static struct session session_begin(struct gps_config *config, gps_config_error_fn *fn, void *arg) {
    reset(config);
    return (struct session){.config = config, .fn = fn, .arg = arg, .file = ""};
}

static int session_end(struct session *session) {
    if (!session->no_memory && session->errors == 0)
        return 0;
    gps_config_free(session->config);
    return session->no_memory ? -ENOMEM : -EINVAL;
}

/* --- errors --- */

__attribute__((format(printf, 3, 4))) static void fail(struct session *session, unsigned line,
                                                       const char *format, ...) {
    char message[512], plain[512];
    struct gps_text text = GPS_TEXT(message), shown = GPS_TEXT(plain);
    va_list args;
    va_start(args, format);
    gps_text_addv(&text, format, args);
    va_end(args);
    gps_text_plain(&shown, message);
    session->errors++;
    if (session->fn)
        session->fn(session->arg, session->file, line, plain);
}

/* Reports a rule's error in the line of the key with which `what` begins, else in the section's. */
static void fail_rule(struct session *session, const struct gps_rule *rule, const char *what) {
    fail(session, gps_key_line(rule, what), "[region%s%s] %s", rule->name[0] != '\0' ? " " : "",
         rule->name, what);
}

/* How much of a value an error shows. */
#define SHOWN_BYTES 64u
static const char *shown(const char *value, char cut[SHOWN_BYTES + 3]) {
    struct gps_text text = gps_text_on(cut, SHOWN_BYTES);
    gps_text_str(&text, value);
    if (text.cut)
        memcpy(cut + text.length, "...", 4);
    return cut;
}

/* ", perhaps share" where the value may be one of the key's that is mistyped. */
static void add_near_value(struct gps_text *text, const struct gps_key *key, const char *value) {
    char words[8][16] = {""};
    struct gps_nearest nearest = {.word = value};
    for (unsigned i = 0; i < 8 && gps_key_has_words(key); i++) {
        struct gps_text word = GPS_TEXT(words[i]);
        gps_value_choice_text(i, key->allowed, &word);
        if (!word.length || strchr(words[i], ' '))
            break;
        gps_nearest_try(&nearest, words[i]);
    }
    gps_text_strs(text, nearest.found ? ", perhaps " : "", nearest.found);
}

/* "mode = shared: not allowed, perhaps share; one of share, audit, off" */
static void fail_value(struct session *session, unsigned line, const struct gps_key *key,
                       const char *value, const char *wrong) {
    char cut[SHOWN_BYTES + 3], near[32];
    struct gps_text text = GPS_TEXT(near);
    add_near_value(&text, key, value);
    fail(session, line, "%s%s%s: %s%s; %s%s", key->name, *value != '\0' ? " = " : "",
         shown(value, cut), wrong, near, gps_key_one_of(key), key->allowed);
}

/* "wiat: unknown key; a region has ..." */
static void fail_unknown(struct session *session, unsigned line, enum gps_section section,
                         const char *name) {
    char cut[SHOWN_BYTES + 3], buffer[512];
    struct gps_text text = GPS_TEXT(buffer);
    gps_key_unknown(section, name, &text);
    fail(session, line, "%s: %s", shown(name, cut), buffer);
}

/* --- sections --- */

static struct gps_rule *current_rule(struct session *session) {
    return &session->config->rules[session->config->rule_count - 1];
}

static void check_key(struct session *session, const struct gps_rule *rule,
                      const struct gps_key *key) {
    const bool given = rule->lines[gps_key_place(key)];
    const bool legacy = strcmp(key->name, "backing") == 0; /* its other value has an effect */
    const char *idle =
        given && rule->role == GPS_ROLE_MERGE ? gps_rule_unused(rule, key->name) : NULL;
    GPS_NEW_TEXT(text, 160);
    if (idle)
        gps_text_strs(&text, key->name, legacy ? " = legacy" : "",
                      " has no effect with role = merge: ", idle, "; remove it");
    if (!given && !key->fallback)
        gps_text_strs(&text, "has no ", key->name, "; ", gps_key_one_of(key), key->allowed);
    if (text.length)
        fail_rule(session, rule, text.bytes);
}

/* Reports the errors that show only when all keys of a section are known. */
static void session_end_section(struct session *session) {
    if (session->section != IN_RULE)
        return;
    struct gps_rule *rule = current_rule(session);
    if (rule->role == GPS_ROLE_MERGE &&
        !rule->lines[gps_key_place(gps_key_find(GPS_SECTION_REGION, "index"))])
        rule->index_max = UINT64_MAX; /* it takes all that fit, not the first */
    if (rule->role == GPS_ROLE_MERGE && rule->keep == GPS_KEEP_OWNER)
        rule->keep = GPS_KEEP_USERS; /* a block has no owner */
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_REGION); key->name; key++)
        check_key(session, rule, key);
    const char *wrong = gps_rule_check(rule);
    if (wrong)
        fail_rule(session, rule, wrong);
}

/* Makes room for one more rule. Reports too many rules once. */
static bool session_make_room(struct session *session, unsigned line) {
    struct gps_config *config = session->config;
    if (config->rule_count == RULES_MAX) {
        if (!session->full)
            fail(session, line, "more than 4096 regions in one file");
        session->full = true;
        return false;
    }
    if (config->rule_count % RULES_BLOCK != 0)
        return true;
    struct gps_rule *rules =
        realloc(config->rules, (config->rule_count + RULES_BLOCK) * sizeof(*rules));
    if (rules)
        config->rules = rules;
    else
        session->no_memory = true;
    return rules != NULL;
}

/* A bad name is reported, and the keys below it are checked all the same. */
static void begin_rule(struct session *session, unsigned line, const char *name) {
    if (!session_make_room(session, line))
        return;
    session->config->rule_count++;
    struct gps_rule *rule = current_rule(session);
    gps_keys_default(GPS_SECTION_REGION, rule, sizeof(*rule));
    rule->line = line;
    struct gps_text text = GPS_TEXT(rule->name);
    gps_text_str(&text, name);
    session->section = IN_RULE;
    const char *wrong = gps_rule_check_name(name);
    if (!wrong)
        return;
    char buffer[160];
    text = GPS_TEXT(buffer);
    gps_text_strs(&text, "the name ", wrong,
                  "; 1 to 127 of A-Z a-z 0-9 . _ - {n} {device}, no dot first");
    fail_rule(session, rule, buffer);
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

static void session_on_section(void *arg, unsigned line, const char *name) {
    struct session *session = arg;
    session_end_section(session);
    session->section = IN_REFUSED;
    if (!name)
        return;
    if (strcmp(name, "gpushare") == 0) {
        session->section = IN_OPTIONS;
        if (session->options_line != 0)
            fail(session, line, "[gpushare] is given twice; it was first in line %u",
                 session->options_line);
        else
            session->options_line = line;
    } else if (region_name(name) != NULL) {
        begin_rule(session, line, region_name(name));
    } else {
        char cut[SHOWN_BYTES + 3];
        struct gps_nearest nearest = {.word = name};
        gps_nearest_try(&nearest, "gpushare");
        gps_nearest_try(&nearest, "region");
        const bool suppresses = strncmp(name, "suppress", 8) == 0;
        fail(session, line, "[%s] unknown section%s%s%s; [gpushare] or [region NAME]%s",
             shown(name, cut), nearest.found ? ", perhaps [" : "", nearest.found,
             nearest.found ? "]" : "",
             suppresses ? "; suppressions have a file of their own: audit --suppressions" : "");
    }
}

/* --- keys --- */

static void session_set_key(struct session *session, unsigned line, const struct gps_key *key,
                            const char *value) {
    bool in_rule = session->section == IN_RULE;
    void *target = in_rule ? (void *)current_rule(session) : (void *)&session->config->options;
    unsigned *given =
        &(in_rule ? current_rule(session)->lines : session->config->lines)[gps_key_place(key)];
    const char *wrong = gps_key_set(key, target, value);
    if (*given)
        fail(session, line, "%s: given twice in this section; it was first in line %u", key->name,
             *given);
    else
        *given = line;
    if (wrong)
        fail_value(session, line, key, value, wrong);
}

static void session_on_key(void *arg, unsigned line, const char *name, const char *value) {
    struct session *session = arg;
    enum gps_section section =
        session->section == IN_RULE ? GPS_SECTION_REGION : GPS_SECTION_OPTIONS;
    const struct gps_key *key = gps_key_find(section, name);
    if (session->section == IN_NONE)
        fail(session, line, "a key outside a section; [gpushare] or [region NAME] must precede it");
    else if (session->section == IN_REFUSED)
        return;
    else if (!key)
        fail_unknown(session, line, section, name);
    else
        session_set_key(session, line, key, value);
}

static void session_on_error(void *arg, unsigned line, const char *message) {
    fail(arg, line, "%s", message);
}

/* --- files --- */

static void check_repeats(struct session *session) {
    const struct gps_rule *rules = session->config->rules;
    for (size_t i = 1; i < session->config->rule_count; i++) {
        size_t first = 0;
        while (first < i && !gps_rule_repeats(&rules[first], &rules[i]))
            first++;
        if (first < i)
            fail(session, rules[i].line,
                 "[region %s] is given twice with one role and program; it was first in line %u",
                 rules[i].name, rules[first].line);
    }
}

static struct gps_ini_events events_for(struct session *session) {
    return (struct gps_ini_events){.headers = "[gpushare] or [region NAME]",
                                   .section = session_on_section,
                                   .key = session_on_key,
                                   .error = session_on_error,
                                   .arg = session};
}

static void end_file(struct session *session) {
    session_end_section(session);
    if (!session->no_memory)
        check_repeats(session);
}

/* False: there is no such file. Any other problem is reported. */
static bool read_path(struct session *session, const char *path) {
    const struct gps_ini_events events = events_for(session);
    char message[192];
    struct gps_text wrong = GPS_TEXT(message), source = GPS_TEXT(session->config->source);
    session->file = path;
    const int status = gps_ini_read_file(path, &events, &wrong);
    if (status == -ENOENT)
        return false;
    gps_text_str(&source, path);
    if (status != 0)
        fail(session, 0, "%s", message);
    end_file(session);
    return true;
}

static void read_required(struct session *session, const char *path) {
    if (!read_path(session, path))
        fail(session, 0, "cannot be read: there is no such file");
}

static const char *environment_variable(const char *name) {
    /* Not getenv: a set-uid program must not let its caller choose where it writes its log. */
    const char *value = secure_getenv(name);
    return value && *value != '\0' ? value : NULL;
}

bool gps_config_home(char path[GPS_CONFIG_PATH]) {
    const char *base = environment_variable("XDG_CONFIG_HOME");
    const char *rest = "/gpushare/gpushare.conf";
    struct gps_text text = gps_text_on(path, GPS_CONFIG_PATH);
    if (!base || *base != '/') { /* the XDG standard says to ignore relative paths */
        base = environment_variable("HOME");
        rest = "/.config/gpushare/gpushare.conf";
    }
    gps_text_strs(&text, base, rest);
    return base && *base == '/' && !text.cut;
}

static void read_environment(struct session *session) {
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_OPTIONS); key->name; key++) {
        GPS_NEW_TEXT(text, 64);
        gps_key_variable(key, &text);
        const char *value = environment_variable(text.bytes);
        if (!value)
            continue;
        session->config->from_environment |= 1u << gps_key_place(key);
        const char *wrong = gps_key_set(key, &session->config->options, value);
        session->file = text.bytes;
        if (wrong)
            fail_value(session, 0, key, value, wrong);
        session->file = "";
    }
}

/* In mode = audit the default of log_level is info. */
static void default_level_of_audit(struct gps_config *config) {
    const size_t place = gps_key_place(gps_key_find(GPS_SECTION_OPTIONS, "log_level"));
    const bool chosen = config->lines[place] || config->from_environment >> place & 1;
    if (config->options.mode == GPS_MODE_AUDIT && !chosen)
        config->options.log_level = GPS_LEVEL_INFO;
}

int gps_config_load(struct gps_config *config, gps_config_error_fn *fn, void *arg) {
    struct session session = session_begin(config, fn, arg);
    const char *path = environment_variable("GPUSHARE_CONFIG");
    char home[GPS_CONFIG_PATH];
    if (path)
        read_required(&session, path);
    else if (!gps_config_home(home) || !read_path(&session, home))
        (void)read_path(&session, GPS_CONFIG_SYSTEM);
    read_environment(&session);
    default_level_of_audit(config);
    return session_end(&session);
}

int gps_config_read_file(struct gps_config *config, const char *path, gps_config_error_fn *fn,
                         void *arg) {
    struct session session = session_begin(config, fn, arg);
    read_required(&session, path);
    return session_end(&session);
}

int gps_config_parse(struct gps_config *config, const char *file, char *text, size_t count,
                     gps_config_error_fn *fn, void *arg) {
    struct session session = session_begin(config, fn, arg);
    const struct gps_ini_events events = events_for(&session);
    session.file = file;
    if (count > GPS_INI_FILE) {
        fail(&session, 0, "is larger than 1 MiB");
    } else {
        gps_ini_read(text, count, &events);
        end_file(&session);
    }
    return session_end(&session);
}

int gps_config_check_plain(const struct gps_config *config, const char *program,
                           const char *executable, gps_config_error_fn *fn, void *arg) {
    const struct gps_options *options = &config->options;
    const struct {
        bool given;
        const char *wrong;
    } checks[] = {
        {options->open_cache, "open_cache does not work with HIP: set it to 0"},
        {options->vmm_ipc == GPS_VMM_IPC_ON,
         "vmm_ipc does not work with HIP: it is for memory of CUDA's cuMemCreate"},
        {options->suspend == GPS_SUSPEND_ON, "suspend does not work with HIP: set it to off"},
    };
    const char *const file = *config->source ? config->source : "the configuration";
    int status = 0;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (checks[i].given) {
            fn(arg, file, 0, checks[i].wrong);
            status = -EINVAL;
        }
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        const bool merges = rule->role == GPS_ROLE_MERGE, framed = rule->frames != GPS_FRAMES_OFF;
        if ((!merges && !framed && rule->backing != GPS_RULE_VMM) ||
            (program && !gps_rule_is_for(rule, program, executable)))
            continue;
        fn(arg, file, rule->line,
           framed   ? "frames do not work with HIP yet: set frames to off"
           : merges ? "role = merge does not work with HIP: merging is built on CUDA's cuMemCreate"
                    : "backing = vmm does not work with HIP: the keeper holds memory of CUDA's "
                      "cuMemCreate");
        status = -EINVAL;
    }
    return status;
}
