/* check.c - `gpushare check`: checks a configuration, and prints its options and rules. */
#include <stdio.h>
#include <string.h>

#include "cli/printable.h"
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

static void print_key(void *arg, const char *key, const char *value) {
    (void)arg;
    printf("  %-12s = %s\n", key, value);
}

/* --- a merge rule, in words --- */

static void print_taken(const struct gps_rule *rule) {
    const bool any = rule->size_max == UINT64_MAX;
    const uint64_t least = rule->size_min > GPS_MERGE_LEAST ? rule->size_min : GPS_MERGE_LEAST;
    const bool one = rule->size_max == least;
    printf("  Takes every allocation of %s%s%s", printable_size(least).text,
           any   ? " or more"
           : one ? ""
                 : " to ",
           any || one ? "" : printable_size(rule->size_max).text);
    if (rule->device_kind == GPS_DEVICE_ORDINAL)
        printf(" on GPU %u", rule->device_ordinal);
    if (rule->device_kind == GPS_DEVICE_UUID)
        printf(" on %s", printable_uuid(rule->device_uuid).text);
    if (gps_rule_needs_caller(rule))
        printf(" by code in %s", rule->caller);
    if (strcmp(rule->program, "*") == 0)
        printf(" of every program");
    else
        printf(" of programs named %s", rule->program);
    if (rule->index_min != 0 || rule->index_max != UINT64_MAX)
        printf(",\n  but of those only number %s",
               printable_indices_value(rule->index_min, rule->index_max).text);
    puts(";");
}

static const char *kept_until(const struct gps_rule *rule) {
    switch (rule->keep) {
    case GPS_KEEP_FOREVER:
        return "until `gpushare drop --merged`";
    case GPS_KEEP_FOR:
        return "after its last user";
    default:
        return "while a process uses it";
    }
}

static void print_merge_in_words(const struct gps_rule *rule) {
    const bool for_time = rule->keep == GPS_KEEP_FOR;
    putchar('\n');
    if (rule->size_max < GPS_MERGE_LEAST) {
        puts("  Takes nothing: allocations below 1 MiB are never merged.");
        return;
    }
    print_taken(rule);
    if (rule->quiet == 0) /* nothing is known of when a kernel's work is done */
        puts("  blocks that copies from the host have filled are held once per GPU, at once;\n"
             "  copies from pageable memory of what is there already are not made;");
    else
        printf("  blocks that %shave not changed for %s are held once per GPU;\n",
               rule->content == GPS_CONTENT_ANY ? "" : "copies from the host filled and that ",
               printable_duration(rule->quiet).text);
    printf("  equal hashes are %s;\n",
           rule->verify == GPS_VERIFY_OFF ? "believed" : "confirmed byte by byte");
    printf("  a block is kept %s%s%s.\n", for_time ? printable_duration(rule->keep_for).text : "",
           for_time ? " " : "", kept_until(rule));
    puts("  A kernel that writes into a merged block ends its process with error 700.");
}

static void print_rule(const struct gps_rule *rule) {
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    gps_rule_each_key(rule, print_key, NULL);
    if (rule->role == GPS_ROLE_MERGE)
        print_merge_in_words(rule);
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
