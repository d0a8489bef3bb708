/*
 * configuration.c - a configuration, and what is wrong with one, told to people.
 */
#include "configuration.h"

#include <inttypes.h>
#include <stdio.h>

#include "config/value.h"
#include "term.h"
#include "util/text.h"

#define SETTINGS_TEXT 64

void configuration_error(void *arg, const char *file, unsigned line, const char *message) {
    (void)arg;
    fflush(stdout);
    if (line > 0)
        fprintf(stderr, "%s:%u: %s\n", file, line, message);
    else
        fprintf(stderr, "%s: %s\n", file, message);
}

static void print_option(void *arg, const char *key, const char *value, const char *from,
                         const char *allowed, const char *sentence) {
    (void)arg;
    (void)allowed;
    printf("  %-12s = %-9s  %s%-11s  %s%s\n", key, value, term_colour(TERM_DIM), from, sentence,
           term_colour(TERM_PLAIN));
}

static void print_key(const char *key, const char *value) {
    printf("  %-12s = %s\n", key, value);
}

static void print_duration(const char *key, uint64_t nanos) {
    char value[SETTINGS_TEXT];
    struct gps_text text = GPS_TEXT(value);
    gps_text_duration(&text, nanos);
    print_key(key, value);
}

static void print_size(const struct gps_rule *rule) {
    char value[SETTINGS_TEXT];
    struct gps_text text = GPS_TEXT(value);
    if (rule->size_min == rule->size_max) {
        gps_text_size(&text, rule->size_min);
    } else if (rule->size_min <= 1 && rule->size_max == UINT64_MAX) {
        gps_text_str(&text, "any");
    } else {
        gps_text_str(&text, rule->size_max == UINT64_MAX ? "at least " : "");
        gps_text_size(&text, rule->size_min);
        gps_text_str(&text, rule->size_max == UINT64_MAX ? "" : " to ");
        if (rule->size_max != UINT64_MAX)
            gps_text_size(&text, rule->size_max);
    }
    print_key("size", value);
}

static void print_index(const struct gps_rule *rule) {
    char value[SETTINGS_TEXT];
    struct gps_text text = GPS_TEXT(value);
    if (rule->index_max != UINT64_MAX)
        gps_value_indices_text(rule->index_min, rule->index_max, &text);
    else if (rule->index_min == 0)
        gps_text_str(&text, "every one");
    else
        snprintf(value, sizeof(value), "%" PRIu64 " and after", rule->index_min);
    print_key("index", value);
}

static void print_device(const struct gps_rule *rule) {
    char value[SETTINGS_TEXT] = "any";
    if (rule->device_kind == GPS_DEVICE_ORDINAL)
        snprintf(value, sizeof(value), "%u", rule->device_ordinal);
    if (rule->device_kind == GPS_DEVICE_UUID)
        gps_format_uuid(rule->device_uuid, value);
    print_key("device", value);
}

/* Only the keys that mean something in the rule's role. */
static void print_role(const struct gps_rule *rule) {
    static const char *const roles[] = {
        [GPS_ROLE_EXPORT] = "export", [GPS_ROLE_IMPORT] = "import", [GPS_ROLE_AUTO] = "auto"};
    print_key("role", roles[rule->role]);
    if (rule->role != GPS_ROLE_EXPORT) {
        print_duration("wait", rule->wait);
        print_key("missing", rule->missing == GPS_MISSING_FAIL ? "fail" : "private");
    }
    if (rule->role == GPS_ROLE_IMPORT)
        return;
    print_key("ready", rule->ready == GPS_READY_FREE ? "free" : "alloc");
    if (rule->ready == GPS_READY_FREE)
        print_duration("handover", rule->handover);
}

static void print_rule(const struct gps_rule *rule) {
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    print_key("program", rule->program);
    print_size(rule);
    print_index(rule);
    print_device(rule);
    print_key("caller", rule->caller);
    print_role(rule);
}

void configuration_print(const struct gps_config *config) {
    printf("%s[gpushare]%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    gps_config_each_option(config, print_option, NULL);
    for (size_t i = 0; i < config->rule_count; i++)
        print_rule(&config->rules[i]);
}
