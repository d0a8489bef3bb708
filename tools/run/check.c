/*
 * check.c - `gpushare check`: checks a configuration, and prints its options and rules.
 */
#include <inttypes.h>
#include <stdarg.h>
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

static void print_key(const char *key, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void print_key(const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("  %-12s = ", key);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

static void print_size(const struct gps_rule *rule) {
    if (rule->size_min == rule->size_max)
        print_key("size", "%s", printable_size(rule->size_min).text);
    else if (rule->size_max < UINT64_MAX)
        print_key("size", "%s to %s", printable_size(rule->size_min).text,
                  printable_size(rule->size_max).text);
    else if (rule->size_min > 1)
        print_key("size", "at least %s", printable_size(rule->size_min).text);
    else
        print_key("size", "any");
}

static void print_index(const struct gps_rule *rule) {
    if (rule->index_max != UINT64_MAX || rule->index_min == UINT64_MAX)
        print_key("index", "%s", printable_indices_value(rule->index_min, rule->index_max).text);
    else if (rule->index_min == 0)
        print_key("index", "every one");
    else
        print_key("index", "%" PRIu64 " and after", rule->index_min);
}

static void print_device(const struct gps_rule *rule) {
    if (rule->device_kind == GPS_DEVICE_ORDINAL)
        print_key("device", "%u", rule->device_ordinal);
    else if (rule->device_kind == GPS_DEVICE_UUID)
        print_key("device", "%s", printable_uuid(rule->device_uuid).text);
    else
        print_key("device", "any");
}

/* --- a merge rule, also in words --- */

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

static void print_merge(const struct gps_rule *rule) {
    static const char *const keeps[] = {
        [GPS_KEEP_OWNER] = "users", [GPS_KEEP_USERS] = "users", [GPS_KEEP_FOREVER] = "forever"};
    print_key("quiet", "%s", printable_duration(rule->quiet).text);
    print_key("content", "%s", rule->content == GPS_CONTENT_ANY ? "any" : "uploaded");
    print_key("keep", "%s",
              rule->keep == GPS_KEEP_FOR ? printable_duration(rule->keep_for).text
                                         : keeps[rule->keep]);
    print_key("verify", "%s", rule->verify == GPS_VERIFY_OFF ? "off" : "bytes");
    print_merge_in_words(rule);
}

/* Only the keys that mean something in the rule's role. */
static void print_role(const struct gps_rule *rule) {
    static const char *const roles[] = {[GPS_ROLE_EXPORT] = "export",
                                        [GPS_ROLE_IMPORT] = "import",
                                        [GPS_ROLE_AUTO] = "auto",
                                        [GPS_ROLE_MERGE] = "merge"};
    print_key("role", "%s", roles[rule->role]);
    if (rule->role == GPS_ROLE_MERGE) {
        print_merge(rule);
        return;
    }
    if (rule->role != GPS_ROLE_EXPORT) {
        print_key("wait", "%s", printable_duration(rule->wait).text);
        print_key("missing", "%s", rule->missing == GPS_MISSING_FAIL ? "fail" : "private");
    }
    if (rule->role == GPS_ROLE_IMPORT)
        return;
    print_key("ready", "%s", rule->ready == GPS_READY_FREE ? "free" : "alloc");
    if (rule->ready == GPS_READY_FREE)
        print_key("handover", "%s", printable_duration(rule->handover).text);
}

static void print_rule(const struct gps_rule *rule) {
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    print_key("program", "%s", rule->program);
    print_size(rule);
    print_index(rule);
    print_device(rule);
    print_key("caller", "%s", rule->caller);
    print_role(rule);
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
        "Of a rule of role = merge it also tells in words what the rule will do.\n"
        "Errors go to stderr as FILE:LINE: what is wrong, and what is allowed.\n",
    .operands_min = 1,
    .operands_max = 1,
    .run = run_check,
};
