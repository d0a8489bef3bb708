/* check.c - `gpushare check`: checks a configuration, and prints its options and rules. */
#include <stdio.h>

#include "cli/term.h"
#include "cli/tool.h"
#include "config/config.h"

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

static void print_rule(const struct gps_rule *rule) {
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    gps_rule_each_key(rule, print_key);
}

static void print_configuration(const struct gps_config *config) {
    printf("%s[gpushare]%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    gps_config_each_option(config, print_option, NULL);
    for (size_t i = 0; i < config->rule_count; i++)
        print_rule(&config->rules[i]);
}

static int run_check(const struct tool_args *args) {
    struct gps_config config;
    if (gps_config_read_file(&config, args->operands[0], tool_error_in, NULL) != 0)
        return TOOL_FAILED;
    printf("%s: OK: %zu rule%s\n\n", args->operands[0], config.rule_count,
           config.rule_count == 1 ? "" : "s");
    print_configuration(&config);
    gps_config_free(&config);
    return TOOL_OK;
}

const struct tool_verb tool_verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "check a configuration and print what it says",
    .details =
        "Prints the options and rules that hold, defaults included; the environment is left out.\n"
        "Errors go to stderr as FILE:LINE: what is wrong, and what is allowed.\n",
    .operands_min = 1,
    .operands_max = 1,
    .run = run_check,
};
