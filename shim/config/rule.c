/*
 * rule.c - matches rules with allocations, and forms the names of regions.
 *
 * Matching runs at every allocation of a process that has rules, so it must not allocate. Globs do
 * not use fnmatch(3) because its result depends on the program's locale: in en_US.UTF-8 the set
 * [a-Z] matches "b" and [*-A] matches "[". A glob is matched with one point to go back to, the last
 * star, so the time is bounded by pattern times string.
 */
#include "rule.h"

#include <string.h>

#include "value.h"

/* --- globs, byte by byte --- */

/* One past the ']' that closes the set; NULL: there is none. A ']' that comes first is a member. */
static const char *set_end(const char *set) {
    const char *at = set + 1;
    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    while (*at != '\0' && *at != ']')
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == ']' ? at + 1 : NULL;
}

static unsigned char member(const char **at) {
    if ((*at)[0] == '\\' && (*at)[1] != '\0')
        (*at)++;
    return (unsigned char)*(*at)++;
}

/* `end` as set_end gave it. */
static bool in_set(const char *set, const char *end, char c) {
    bool negated = set[1] == '!' || set[1] == '^';
    bool found = false;
    for (const char *at = set + 1 + negated; at < end - 1;) {
        unsigned char low = member(&at);
        unsigned char high = low;
        if (at[0] == '-' && at + 1 < end - 1) {
            at++;
            high = member(&at);
        }
        found = found || (low <= (unsigned char)c && (unsigned char)c <= high);
    }
    return found != negated;
}

/* How much of the pattern (no star) stands for `c`; 0: it does not match. */
static size_t match_char(const char *pattern, char c) {
    const char *end = *pattern == '[' ? set_end(pattern) : NULL;
    if (end)
        return in_set(pattern, end, c) ? (size_t)(end - pattern) : 0;
    if (*pattern == '\\')
        return pattern[1] == c ? 2 : 0;
    return *pattern == '?' || *pattern == c ? 1 : 0;
}

bool gps_glob_match(const char *pattern, const char *string) {
    const char *after_star = NULL;
    const char *retry = NULL;
    while (*string != '\0') {
        size_t used = 0;
        if (*pattern == '*') {
            after_star = ++pattern;
            retry = string;
        } else if ((used = match_char(pattern, *string)) > 0) {
            pattern += used;
            string++;
        } else if (after_star) {
            pattern = after_star;
            string = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static void lower(const char *from, char to[GPS_GLOB_BYTES]) {
    size_t i = 0;
    for (; i < GPS_GLOB_BYTES - 1 && from[i]; i++)
        to[i] = gps_lower(from[i]);
    to[i] = '\0';
}

bool gps_glob_match_any_case(const char *pattern, const char *string) {
    char low_pattern[GPS_GLOB_BYTES], low_string[GPS_GLOB_BYTES];
    lower(pattern, low_pattern);
    lower(string, low_string);
    return gps_glob_match(low_pattern, low_string);
}

const char *gps_glob_check(const char *pattern) {
    if (*pattern == '\0')
        return "no value";
    if (strlen(pattern) >= GPS_GLOB_BYTES)
        return "longer than 127 characters";
    if (strstr(pattern, "[[:") != NULL)
        return "classes such as [[:digit:]] are not known";
    while (*pattern != '\0') {
        const char *end = *pattern == '[' ? set_end(pattern) : NULL;
        if (*pattern == '[' && !end)
            return "a [ is not closed";
        if (*pattern == '/')
            return "holds a /, but a file name is matched and not a path";
        if (*pattern == '\\' && *++pattern == '\0')
            return "ends with a \\";
        pattern = end ? end : pattern + 1;
    }
    return NULL;
}

/* --- names --- */

static const char name_n[] = "{n}";
static const char name_device[] = "{device}";

/* The length of the placeholder at `at`; 0 when there is none. */
static size_t placeholder(const char *at) {
    if (strncmp(at, name_n, sizeof(name_n) - 1) == 0)
        return sizeof(name_n) - 1;
    if (strncmp(at, name_device, sizeof(name_device) - 1) == 0)
        return sizeof(name_device) - 1;
    return 0;
}

const char *gps_rule_check_name(const char *name) {
    if (*name == '\0')
        return "is missing";
    if (strlen(name) >= GPS_NAME_BYTES)
        return "is longer than 127 characters";
    if (*name == '.')
        return "begins with a dot";
    while (*name != '\0') {
        size_t length = placeholder(name);
        if (length == 0 && (*name == '{' || *name == '}'))
            return "has a placeholder that is not known";
        if (length == 0 && !gps_is_name_char(*name))
            return "has a character that is not allowed";
        name += length == 0 ? 1 : length;
    }
    return NULL;
}

bool gps_rule_name(const struct gps_rule *rule, uint64_t n, unsigned device,
                   char name[GPS_NAME_BYTES]) {
    GPS_NEW_TEXT(text, GPS_NAME_BYTES);
    for (const char *at = rule->name; *at != '\0';) {
        size_t length = placeholder(at);
        if (length == 0)
            gps_text_bytes(&text, at, 1);
        else
            gps_text_dec(&text, length == sizeof(name_n) - 1 ? n : device);
        at += length == 0 ? 1 : length;
    }
    if (text.cut)
        return false;
    memcpy(name, text.bytes, text.length + 1);
    return true;
}

/* --- rules --- */

bool gps_rule_is_for(const struct gps_rule *rule, const char *program, const char *executable) {
    return gps_glob_match(rule->program, program) || gps_glob_match(rule->program, executable);
}

static bool is_on(const struct gps_rule *rule, const struct gps_alloc_facts *facts) {
    switch (rule->device_kind) {
    case GPS_DEVICE_ORDINAL:
        return rule->device_ordinal == facts->device_ordinal;
    case GPS_DEVICE_UUID:
        return memcmp(rule->device_uuid, facts->device_uuid, GPS_UUID_BYTES) == 0;
    default:
        return true;
    }
}

enum gps_mismatch gps_rule_mismatch(const struct gps_rule *rule,
                                    const struct gps_alloc_facts *facts) {
    if (!gps_rule_is_for(rule, facts->program, facts->executable))
        return GPS_OTHER_PROGRAM;
    if (facts->size < rule->size_min || facts->size > rule->size_max)
        return GPS_OTHER_SIZE;
    if (!is_on(rule, facts))
        return GPS_OTHER_DEVICE;
    if (facts->pool && (rule->backing != GPS_RULE_VMM || rule->role == GPS_ROLE_MERGE))
        return GPS_POOL_MEMORY;
    if (facts->created && (rule->role != GPS_ROLE_MERGE || rule->created == GPS_CREATED_OFF))
        return GPS_CREATED_MEMORY;
    return GPS_FITS;
}

static bool exports_frames(const struct gps_rule *rule) {
    return rule->frames != GPS_FRAMES_OFF && gps_rule_exports(rule);
}

bool gps_config_has_frames(const struct gps_config *config, const struct gps_rule *rule) {
    bool has = rule->frames != GPS_FRAMES_OFF;
    for (size_t i = 0; !has && i < config->rule_count; i++)
        has = exports_frames(&config->rules[i]) && strcmp(config->rules[i].name, rule->name) == 0;
    return has && rule->role != GPS_ROLE_MERGE;
}

bool gps_rule_needs_caller(const struct gps_rule *rule) {
    return rule->caller[strspn(rule->caller, "*")] != '\0';
}

static const char *check_backing(const struct gps_rule *rule) {
    if (rule->backing == GPS_RULE_VMM)
        return rule->ready == GPS_READY_FREE ? "ready = free is for backing = legacy; with vmm, "
                                               "keep says what outlives its owner"
                                             : NULL;
    if (rule->keep != GPS_KEEP_OWNER)
        return "keep is for backing = vmm: legacy memory ends with its owner";
    if (rule->access == GPS_ACCESS_RO)
        return "access = ro is for backing = vmm: legacy memory is always writable";
    return NULL;
}

const char *gps_rule_check(const struct gps_rule *rule) {
    if (rule->role == GPS_ROLE_MERGE)
        return NULL; /* a merge rule gives no names */
    if (rule->index_min != rule->index_max && !strstr(rule->name, name_n))
        return "index = * or a range gives many allocations one name; put {n} into the name";
    if (rule->ready == GPS_READY_FREE && rule->handover == 0)
        return "ready = free with handover = 0 hands nothing over; give handover a time";
    if (rule->ready == GPS_READY_FREE && rule->frames != GPS_FRAMES_OFF)
        return "ready = free hands over one result; with frames each frame is handed over";
    return check_backing(rule);
}

const char *gps_rule_unused(const struct gps_rule *rule, const char *key) {
    static const struct {
        const char *keys, *why;
        unsigned roles; /* bit n: without effect with the n-th role */
    } unused[] = {
        {"wait, missing", "an exporter waits for nobody", 1u << GPS_ROLE_EXPORT},
        {"ready, handover, keep, access", "the exporter's rule says it", 1u << GPS_ROLE_IMPORT},
        {"frame_slots, frames_timeout, frame_waits, touch", "the exporter's rule says it",
         1u << GPS_ROLE_IMPORT},
        {"frames, frame_slots, frames_timeout, frame_waits, touch",
         "programs do not share a buffer by it", 1u << GPS_ROLE_MERGE},
        {"quiet, content, verify, overcommit, rdma, mps, created", "it is for role = merge",
         ~(1u << GPS_ROLE_MERGE)},
        {"wait", "no process waits for another", 1u << GPS_ROLE_MERGE},
        {"missing", "what is not equal stays private", 1u << GPS_ROLE_MERGE},
        {"ready", "quiet says when a block is merged", 1u << GPS_ROLE_MERGE},
        {"handover", "keep says how long a block stays", 1u << GPS_ROLE_MERGE},
        {"access", "a copy into a merged block makes it private", 1u << GPS_ROLE_MERGE},
    };
    const bool merge = rule->role == GPS_ROLE_MERGE, vmm = rule->backing == GPS_RULE_VMM;
    unsigned place;
    for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
        if (unused[i].roles >> rule->role & 1 && !gps_value_choice(key, unused[i].keys, &place))
            return unused[i].why;
    if (merge && strcmp(key, "overcommit") == 0 && rule->quiet &&
        rule->overcommit == GPS_OVERCOMMIT_ON)
        return "it is for quiet = 0: other memory is there when it is allocated";
    if (merge)
        return strcmp(key, "backing") == 0 && !vmm ? "its blocks are memory of cuMemCreate" : NULL;
    if (rule->frames == GPS_FRAMES_OFF && rule->role == GPS_ROLE_IMPORT &&
        strcmp(key, "frames") == 0)
        return "the exporter's rule says it";
    if (rule->frames != GPS_FRAMES_EACH && strcmp(key, "frames_timeout") == 0)
        return "it is for frames = each";
    if (rule->frames == GPS_FRAMES_OFF &&
        !gps_value_choice(key, "frame_slots, frame_waits, touch", &place))
        return "it is for frames = latest and frames = each";
    if (strcmp(key, "handover") == 0 && rule->ready != GPS_READY_FREE)
        return "it is for ready = free";
    if ((strcmp(key, "keep") == 0 || strcmp(key, "access") == 0) && !vmm)
        return "it is for backing = vmm";
    return NULL;
}

bool gps_rule_repeats(const struct gps_rule *a, const struct gps_rule *b) {
    return a->role == b->role && strcmp(a->name, b->name) == 0 &&
           strcmp(a->program, b->program) == 0;
}
