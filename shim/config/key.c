/*
 * key.c - the table of the keys of gpushare.conf, made from options.def.
 *
 * A type is two functions: text to field, field to text. Adding a key is a row in options.def and a
 * field in config.h; nothing else knows the keys by name.
 */
#include "key.h"

#include <assert.h>
#include <string.h>

#include "rule.h"
#include "util/nearest.h"
#include "value.h"

/* A uint64_t has only the first two functions, other types the last two. CHOICE has none, because
 * it also needs the key's list of values. */
struct gps_key_type {
    const char *(*parse)(const char *text, uint64_t *number);
    void (*format)(uint64_t number, struct gps_text *text);
    const char *(*set)(void *field, const char *text);
    void (*show)(const void *field, struct gps_text *text);
};

/* The rule that a field lies in. */
#define RULE_OF(field, member)                                                                     \
    ((struct gps_rule *)(void *)((char *)(field)-offsetof(struct gps_rule, member)))

/* --- types --- */

/* Every enum of config.h is written through an unsigned. */
static_assert(sizeof(enum gps_mode) == sizeof(unsigned), "enums are unsigned");
static_assert(sizeof(enum gps_role) == sizeof(unsigned), "enums are unsigned");

static const char *set_choice(const struct gps_key *key, void *field, const char *text) {
    unsigned place = 0;
    const char *wrong = gps_value_choice(text, key->allowed, &place);
    if (!wrong)
        memcpy(field, &place, sizeof(place));
    else if (strcmp(text, "written") == 0) /* a value of `ready`, once */
        wrong =
            "replaced by role = merge, which finds by itself what is uploaded (docs/replicas.md)";
    return wrong;
}

static void show_choice(const struct gps_key *key, const void *field, struct gps_text *text) {
    unsigned place;
    memcpy(&place, field, sizeof(place));
    gps_value_choice_text(place, key->allowed, text);
}

static const char *set_log(void *field, const char *text) {
    if (strlen(text) >= GPS_CONFIG_PATH)
        return "longer than 1023 characters";
    for (const char *at = strchr(text, '%'); at; at = strchr(at + 2, '%'))
        if (at[1] == '\0' || !strchr("pc%", at[1]))
            return "after a % only p, c and % are known";
    memcpy(field, text, strlen(text) + 1);
    return NULL;
}

static const char *set_event_log(void *field, const char *text) {
    return strcmp(text, "stderr") == 0 ? "events do not go to stderr" : set_log(field, text);
}

static void show_string(const void *field, struct gps_text *text) {
    gps_text_str(text, field);
}

static const char *set_number(void *field, const char *text, uint64_t most) {
    uint64_t value = 0;
    const char *wrong = gps_value_number(text, most, &value);
    if (!wrong)
        *(unsigned *)field = (unsigned)value;
    return wrong;
}

static const char *set_depth(void *field, const char *text) {
    return set_number(field, text, GPS_STACK_MAX);
}

static const char *set_cache_count(void *field, const char *text) {
    return set_number(field, text, GPS_OPEN_CACHE_MAX);
}

static const char *set_slots(void *field, const char *text) {
    uint64_t value = 0;
    const char *wrong = gps_value_number(text, GPS_FRAMES_SLOTS_MAX, &value);
    if (!wrong && value < 2)
        wrong = "one frame is read while another is written";
    if (!wrong)
        *(unsigned *)field = (unsigned)value;
    return wrong;
}

static const char *set_waits(void *field, const char *text) {
    return set_number(field, text, GPS_FRAME_WAITS_MAX);
}

static void show_number(const void *field, struct gps_text *text) {
    gps_text_dec(text, *(const unsigned *)field);
}

/* "auto" is the largest number: a share of the memory left. */
static const char *set_spare(void *field, const char *text) {
    uint64_t bytes = strcmp(text, "auto") == 0 ? UINT64_MAX : 0;
    const char *wrong = bytes || strcmp(text, "0") == 0 ? NULL : gps_value_size(text, &bytes);
    if (!wrong)
        memcpy(field, &bytes, sizeof(bytes));
    return wrong;
}

static void show_spare(const void *field, struct gps_text *text) {
    uint64_t bytes;
    memcpy(&bytes, field, sizeof(bytes));
    if (bytes == UINT64_MAX)
        gps_text_str(text, "auto");
    else if (bytes == 0)
        gps_text_str(text, "0");
    else
        gps_value_size_text(bytes, text);
}

static const char *set_glob(void *field, const char *text) {
    const char *wrong = gps_glob_check(text);
    if (!wrong)
        memcpy(field, text, strlen(text) + 1);
    return wrong;
}

/* A range lies in two members, of which the first is the key's field. */
#define RANGE_TYPE(name, min, max, scale)                                                          \
    static const char *set_##name(void *field, const char *text) {                                 \
        struct gps_rule *rule = RULE_OF(field, min);                                               \
        return gps_value_range(text, &scale, &rule->min, &rule->max);                              \
    }                                                                                              \
    static void show_##name(const void *field, struct gps_text *text) {                            \
        const struct gps_rule *rule = RULE_OF(field, min);                                         \
        gps_value_range_text(rule->min, rule->max, &scale, text);                                  \
    }
RANGE_TYPE(range, size_min, size_max, gps_sizes)
RANGE_TYPE(index, index_min, index_max, gps_indices)

#define KEEPS "owner, users, forever"
static const char *set_keep(void *field, const char *text) {
    struct gps_rule *rule = RULE_OF(field, keep);
    unsigned place = 0;
    rule->keep_for = 0;
    if (!gps_value_choice(text, KEEPS, &place)) {
        rule->keep = (enum gps_keep)place;
        return NULL;
    }
    const char *wrong = gps_value_duration(text, &rule->keep_for);
    if (!wrong)
        rule->keep = GPS_KEEP_FOR;
    return wrong;
}

static void show_keep(const void *field, struct gps_text *text) {
    const struct gps_rule *rule = RULE_OF(field, keep);
    if (rule->keep == GPS_KEEP_FOR)
        gps_value_duration_text(rule->keep_for, text);
    else
        gps_value_choice_text(rule->keep, KEEPS, text);
}

static const char *set_device(void *field, const char *text) {
    struct gps_rule *rule = RULE_OF(field, device_kind);
    uint64_t ordinal = 0;
    if (strcmp(text, "*") == 0) {
        rule->device_kind = GPS_DEVICE_ANY;
    } else if (gps_parse_uuid(text, rule->device_uuid)) {
        rule->device_kind = GPS_DEVICE_UUID;
    } else if (!gps_value_number(text, INT32_MAX, &ordinal)) {
        rule->device_kind = GPS_DEVICE_ORDINAL;
        rule->device_ordinal = (unsigned)ordinal;
    } else {
        return "not a device";
    }
    return NULL;
}

static void show_device(const void *field, struct gps_text *text) {
    const struct gps_rule *rule = RULE_OF(field, device_kind);
    char uuid[GPS_UUID_TEXT];
    gps_format_uuid(rule->device_uuid, uuid);
    if (rule->device_kind == GPS_DEVICE_ORDINAL)
        gps_text_dec(text, rule->device_ordinal);
    else
        gps_text_str(text, rule->device_kind == GPS_DEVICE_UUID ? uuid : "*");
}

static const struct gps_key_type CHOICE = {.set = NULL};
static const struct gps_key_type DURATION = {.parse = gps_value_duration,
                                             .format = gps_value_duration_text};
static const struct gps_key_type SIZE = {.parse = gps_value_size, .format = gps_value_size_text};
static const struct gps_key_type LOG = {.set = set_log, .show = show_string};
static const struct gps_key_type EVENT_LOG = {.set = set_event_log, .show = show_string};
static const struct gps_key_type DEPTH = {.set = set_depth, .show = show_number};
static const struct gps_key_type NUMBER = {.set = set_cache_count, .show = show_number};
static const struct gps_key_type SLOTS = {.set = set_slots, .show = show_number};
static const struct gps_key_type WAITS = {.set = set_waits, .show = show_number};
static const struct gps_key_type SPARE = {.set = set_spare, .show = show_spare};
static const struct gps_key_type GLOB = {.set = set_glob, .show = show_string};
static const struct gps_key_type RANGE = {.set = set_range, .show = show_range};
static const struct gps_key_type INDEX = {.set = set_index, .show = show_index};
static const struct gps_key_type KEEP = {.set = set_keep, .show = show_keep};
static const struct gps_key_type DEVICE = {.set = set_device, .show = show_device};

/* --- the table --- */

#define OPTION(key, type, fallback, allowed, sentence)                                             \
    {#key, fallback, allowed, sentence, offsetof(struct gps_options, key), &(type)},
#define RULE_KEY(key, field, type, fallback, allowed, sentence)
static const struct gps_key options[] = {
#include "options.def"
    {.name = NULL}};
#undef OPTION
#undef RULE_KEY

#define OPTION(key, type, fallback, allowed, sentence)
#define RULE_KEY(key, field, type, fallback, allowed, sentence)                                    \
    {#key, fallback, allowed, sentence, offsetof(struct gps_rule, field), &(type)},
static const struct gps_key rule_keys[] = {
#include "options.def"
    {.name = NULL}};
#undef OPTION
#undef RULE_KEY

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static_assert(COUNT(options) - 1 <= GPS_KEYS_MAX, "raise GPS_KEYS_MAX");
static_assert(COUNT(rule_keys) - 1 <= GPS_KEYS_MAX, "raise GPS_KEYS_MAX");

const struct gps_key *gps_keys_of(enum gps_section section) {
    return section == GPS_SECTION_OPTIONS ? options : rule_keys;
}

const struct gps_key *gps_key_find(enum gps_section section, const char *name) {
    const struct gps_key *key = gps_keys_of(section);
    while (key->name && strcmp(key->name, name) != 0)
        key++;
    return key->name ? key : NULL;
}

size_t gps_key_place(const struct gps_key *key) {
    bool is_option = key >= options && key < options + COUNT(options);
    return (size_t)(key - (is_option ? options : rule_keys));
}

const char *gps_key_set(const struct gps_key *key, void *target, const char *text) {
    if (*text == '\0')
        return "no value";
    void *field = (char *)target + key->offset;
    if (key->type->parse)
        return key->type->parse(text, field);
    return key->type->set ? key->type->set(field, text) : set_choice(key, field, text);
}

/* The value as it would be written in a file. */
static void option_show(const struct gps_key *key, const void *target, struct gps_text *text) {
    const void *field = (const char *)target + key->offset;
    if (key->type->format)
        key->type->format(*(const uint64_t *)field, text);
    else if (key->type->show)
        key->type->show(field, text);
    else
        show_choice(key, field, text);
}

unsigned gps_key_line(const struct gps_rule *rule, const char *what) {
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_REGION); key->name; key++) {
        const unsigned line = rule->lines[gps_key_place(key)];
        if (line && strncmp(what, key->name, strlen(key->name)) == 0)
            return line;
    }
    return rule->line;
}

void gps_rule_each_key(const struct gps_rule *rule,
                       void (*fn)(void *arg, const char *key, const char *value), void *arg) {
    for (const struct gps_key *key = rule_keys; key->name; key++) {
        GPS_NEW_TEXT(text, GPS_GLOB_BYTES);
        if (gps_rule_unused(rule, key->name))
            continue;
        option_show(key, rule, &text);
        fn(arg, key->name, text.bytes);
    }
}

void gps_keys_default(enum gps_section section, void *target, size_t size) {
    memset(target, 0, size);
    for (const struct gps_key *key = gps_keys_of(section); key->name; key++)
        if (key->fallback)
            (void)gps_key_set(key, target, key->fallback);
}

/* --- messages --- */

bool gps_key_has_words(const struct gps_key *key) {
    return key->type == &CHOICE || key->type == &KEEP;
}

const char *gps_key_one_of(const struct gps_key *key) {
    return key->type == &CHOICE ? "one of " : "";
}

/* "unknown key, perhaps wait" */
static void add_unknown(const struct gps_key *key, const char *name, struct gps_text *text) {
    struct gps_nearest nearest = {.word = name};
    for (; key->name; key++)
        gps_nearest_try(&nearest, key->name);
    gps_text_strs(text, "unknown key", nearest.found ? ", perhaps " : "", nearest.found);
}

void gps_key_unknown(enum gps_section section, const char *name, struct gps_text *text) {
    bool is_option = section == GPS_SECTION_OPTIONS;
    if (!is_option && strcmp(name, "upload") == 0)
        gps_text_str(text, "upload = once is replaced by role = merge; a rule needs nothing but a "
                           "program and that (docs/replicas.md)");
    else if (gps_key_find(is_option ? GPS_SECTION_REGION : GPS_SECTION_OPTIONS, name) != NULL)
        gps_text_str(text, is_option ? "belongs in a [region NAME]" : "belongs in [gpushare]");
    else
        add_unknown(gps_keys_of(section), name, text);
    gps_text_str(text, is_option ? "; [gpushare] has " : "; a region has ");
    const char *before = "";
    for (const struct gps_key *key = gps_keys_of(section); key->name; key++, before = ", ")
        gps_text_strs(text, before, key->name);
}

void gps_key_variable(const struct gps_key *key, struct gps_text *text) {
    gps_text_str(text, "GPUSHARE_");
    for (const char *at = key->name; *at != '\0'; at++) {
        char upper = (char)(*at >= 'a' && *at <= 'z' ? *at - ('a' - 'A') : *at);
        gps_text_bytes(text, &upper, 1);
    }
}

void gps_config_each_option(const struct gps_config *config, gps_option_fn *fn, void *arg) {
    for (const struct gps_key *key = options; key->name; key++) {
        const size_t place = gps_key_place(key);
        GPS_NEW_TEXT(text, GPS_CONFIG_PATH);
        const char *from = "default";
        if (config->from_environment >> place & 1)
            from = "environment";
        else if (config->lines[place])
            from = "file";
        option_show(key, &config->options, &text);
        fn(arg, key->name, text.bytes, from, key->allowed, key->sentence);
    }
}
