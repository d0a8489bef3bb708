/*
 * configuration.c - prints a configuration, and the errors in one.
 */
#include "configuration.h"

#include <inttypes.h>
#include <stdio.h>

#include "printable.h"
#include "term.h"

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
    print_key(key, printable_duration(nanos).text);
}

static void print_size(const struct gps_rule *rule) {
    if (rule->size_min == rule->size_max)
        print_key("size", printable_size(rule->size_min).text);
    else if (rule->size_max < UINT64_MAX)
        printf("  %-12s = %s to %s\n", "size", printable_size(rule->size_min).text,
               printable_size(rule->size_max).text);
    else if (rule->size_min > 1)
        printf("  %-12s = at least %s\n", "size", printable_size(rule->size_min).text);
    else
        print_key("size", "any");
}

static void print_index(const struct gps_rule *rule) {
    if (rule->index_max != UINT64_MAX)
        print_key("index", printable_indices_value(rule->index_min, rule->index_max).text);
    else if (rule->index_min == 0)
        print_key("index", "every one");
    else
        printf("  %-12s = %" PRIu64 " and after\n", "index", rule->index_min);
}

static void print_device(const struct gps_rule *rule) {
    if (rule->device_kind == GPS_DEVICE_ORDINAL)
        printf("  %-12s = %u\n", "device", rule->device_ordinal);
    else if (rule->device_kind == GPS_DEVICE_UUID)
        print_key("device", printable_uuid(rule->device_uuid).text);
    else
        print_key("device", "any");
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
