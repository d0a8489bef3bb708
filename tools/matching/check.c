/* check.c - `gpushare check`: checks a configuration, and prints its options and rules. */
#include <stdio.h>

#include "check_warnings.h"
#include "check_words.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"

static void print_option(void *arg, const char *key, const char *value, const char *from,
                         const char *allowed, const char *sentence) {
    (void)arg;
    (void)allowed;
    const int at = printf("  %-12s = %-9s  %-11s  ", key, value, from);
    fputs(term_colour(TERM_DIM), stdout);
    wrap_text(stdout, sentence, (size_t)at);
    fputs(term_colour(TERM_PLAIN), stdout);
}

static void print_key(void *arg, const char *key, const char *value) {
    (void)arg;
    printf("  %-12s = %s\n", key, value);
}

static void print_rule(const struct gps_rule *rule) {
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    gps_rule_each_key(rule, print_key, NULL);
    putchar('\n');
    check_print_words(rule);
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
    fflush(stdout);
    check_warn(args->operands[0], &config);
    gps_config_free(&config);
    return TOOL_OK;
}

const struct tool_verb tool_verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "check a configuration and print what it says",
    .details = "Prints the options and rules that hold, defaults included; the environment is "
               "left out.\n"
               "Keys that have no effect in a rule are left out, and what the rest say follows "
               "in words.\n"
               "Errors go to stderr as FILE:LINE: what is wrong, and what is allowed; then "
               "warnings of what is allowed and hardly meant: an import that nobody exports, "
               "sides that cannot meet, a rule that an earlier one hides, a key without "
               "effect, a log that cannot be written here.\n",
    .operands_min = 1,
    .operands_max = 1,
    .run = run_check,
};
