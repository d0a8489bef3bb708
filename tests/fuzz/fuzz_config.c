/*
 * fuzz_config.c - any bytes as a configuration: libFuzzer's entry.
 *
 * What parses must be usable: rules match, name and list without harm, and what a listing shows
 * reads back as the same value. What does not parse must say why and leave the defaults.
 */
#include "fuzz.h"

#include "config/key.h"

static void on_error(void *arg, const char *file, unsigned line, const char *message) {
    unsigned *errors = arg;
    need(strcmp(file, "fuzz") == 0 && line <= 1u << 20 && message[0] != '\0');
    need(strchr(message, '\n') == NULL);
    (*errors)++;
}

static void on_option(void *arg, const char *key, const char *value, const char *from,
                      const char *allowed, const char *sentence) {
    struct gps_options options = *(const struct gps_options *)arg;
    const struct gps_key *row = gps_key_find(GPS_SECTION_OPTIONS, key);

    need(row != NULL && from != NULL && allowed != NULL && sentence != NULL);
    need(gps_key_set(row, &options, value) == NULL);
    need(memcmp(&options, arg, sizeof(options)) == 0);
}

static void use_rule(const struct gps_rule *rule, const char *text) {
    const uint8_t uuid[GPS_UUID_BYTES] = {0};
    const struct gps_alloc_facts facts = {.program = text,
                                          .executable = "server",
                                          .size = rule->size_min,
                                          .device_ordinal = 0,
                                          .device_uuid = uuid};
    char name[GPS_NAME_BYTES];
    need(rule->size_min >= 1 && rule->size_min <= rule->size_max);
    need(rule->line > 0 && rule->name[0] != '\0' && rule->name[0] != '.');
    (void)gps_rule_mismatch(rule, &facts);
    (void)gps_rule_needs_caller(rule);
    if (gps_rule_name(rule, UINT64_MAX, 7, name))
        need(strpbrk(name, "{}/ ") == NULL && strlen(name) < GPS_NAME_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gps_config config;
    unsigned errors = 0;
    char *text = memcpy(malloc(size + 1), data, size);
    int status = gps_config_parse(&config, "fuzz", text, size, on_error, &errors);
    need((status == 0) == (errors == 0));
    need(status == 0 || (config.rules == NULL && config.rule_count == 0));
    for (size_t i = 0; i < config.rule_count; i++)
        use_rule(&config.rules[i], i > 0 ? config.rules[i - 1].program : "program");
    gps_config_each_option(&config, on_option, &config.options);
    gps_config_free(&config);
    free(text);
    return 0;
}
