/* check.c - `gpushare check`: checks a configuration, and prints its options and rules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_warnings.h"
#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"

#define INDENT 2 /* of the words */

/* --- what a rule does, in words --- */

/* Prints a sentence, wrapped, and frees it. */
static void say(char *sentence) {
    printf("%*s", INDENT, "");
    wrap_text(stdout, sentence, INDENT);
    free(sentence);
}

/* "of 64 MiB", "of 1 MiB to 2 MiB", "of any size"; malloc'ed. */
static char *size_words(uint64_t least, uint64_t most) {
    if (most == UINT64_MAX && least <= 1)
        return tool_copy("of any size");
    if (most == UINT64_MAX)
        return tool_format("of %s or more", printable_size(least).text);
    if (least <= 1)
        return tool_format("of %s or less", printable_size(most).text);
    if (least == most)
        return tool_format("of %s", printable_size(least).text);
    return tool_format("of %s to %s", printable_size(least).text, printable_size(most).text);
}

/* " on GPU 1 by code in libx.so of programs named camera"; malloc'ed. */
static char *place_words(const struct gps_rule *rule) {
    char *device = rule->device_kind == GPS_DEVICE_ORDINAL
                       ? tool_format(" on GPU %u", rule->device_ordinal)
                   : rule->device_kind == GPS_DEVICE_UUID
                       ? tool_format(" on %s", printable_uuid(rule->device_uuid).text)
                       : tool_copy("");
    char *caller =
        gps_rule_needs_caller(rule) ? tool_format(" by code in %s", rule->caller) : tool_copy("");
    const bool every = strcmp(rule->program, "*") == 0;
    char *words =
        tool_format("%s%s of %s%s", device, caller, every ? "every program" : "programs named ",
                    every ? "" : rule->program);
    free(device);
    free(caller);
    return words;
}

/* "the first allocation of 64 MiB of programs named camera"; malloc'ed. */
static char *taken_words(const struct gps_rule *rule) {
    char *size = size_words(rule->size_min, rule->size_max), *place = place_words(rule);
    char *which;
    if (rule->index_max == 0)
        which = tool_copy("the first allocation");
    else if (rule->index_min == 0 && rule->index_max == UINT64_MAX)
        which = tool_copy("every allocation");
    else
        which = tool_format("allocation number %s (from 0)",
                            printable_indices_value(rule->index_min, rule->index_max).text);
    char *words = tool_format("%s %s%s", which, size, place);
    free(which);
    free(size);
    free(place);
    return words;
}

/* --- export, import, auto --- */

static void say_taken(const struct gps_rule *rule) {
    char *taken = taken_words(rule);
    switch (rule->role) {
    case GPS_ROLE_EXPORT:
        say(tool_format("Takes %s: that becomes region %s, for others to import.", taken,
                        rule->name));
        break;
    case GPS_ROLE_IMPORT:
        say(tool_format("Takes %s: that becomes what another program exports as %s.", taken,
                        rule->name));
        break;
    default:
        say(tool_format("Takes %s: the first process exports it as %s, the others import it.",
                        taken, rule->name));
    }
    free(taken);
}

static void say_export(const struct gps_rule *rule) {
    if (rule->ready == GPS_READY_FREE)
        say(tool_format("Importers get it when the program frees it; it is kept for the first of "
                        "them for %s, the end of the program included.",
                        printable_duration(rule->handover).text));
    else
        say(tool_copy("Importers get it at once."));
}

static void say_import(const struct gps_rule *rule) {
    say(tool_format("It is waited for up to %s; if it does not come the allocation %s.",
                    printable_duration(rule->wait).text,
                    rule->missing == GPS_MISSING_FAIL ? "fails: out of memory"
                                                      : "is private, and a report says so"));
}

/* "10 s after its last user"; malloc'ed. */
static char *kept_words(const struct gps_rule *rule) {
    const bool merge = rule->role == GPS_ROLE_MERGE;
    switch (rule->keep) {
    case GPS_KEEP_FOREVER:
        return tool_format("until `gpushare drop%s`", merge ? " --merged" : "");
    case GPS_KEEP_FOR:
        return tool_format("%s after its last user", printable_duration(rule->keep_for).text);
    case GPS_KEEP_USERS:
        return tool_copy(merge ? "while a process uses it" : "as long as a process uses it");
    default:
        return tool_copy(merge ? "while a process uses it" : "until its owner frees it or ends");
    }
}

static void say_backing(const struct gps_rule *rule) {
    const char *write = rule->access == GPS_ACCESS_RO ? "only read it" : "write it, too";
    char *kept = kept_words(rule);
    if (rule->backing == GPS_RULE_LEGACY)
        say(tool_copy(
            "It is memory of cudaMalloc: it ends with its owner, importers write it, too, "
            "and cudaMallocAsync is not matched."));
    else if (rule->role == GPS_ROLE_IMPORT)
        say(tool_format(
            "It is memory of cuMemCreate; cudaMallocAsync is matched, too. This program "
            "may %s.",
            write));
    else
        say(tool_format("It is memory of cuMemCreate, kept %s; importers may %s. "
                        "cudaMallocAsync is matched, too.",
                        kept, write));
    free(kept);
}

static void print_share_words(const struct gps_rule *rule) {
    say_taken(rule);
    if (rule->role != GPS_ROLE_IMPORT)
        say_export(rule);
    if (rule->role != GPS_ROLE_EXPORT)
        say_import(rule);
    say_backing(rule);
}

/* --- merge --- */

static void print_taken(const struct gps_rule *rule) {
    const uint64_t least = rule->size_min > GPS_MERGE_LEAST ? rule->size_min : GPS_MERGE_LEAST;
    char *size = size_words(least, rule->size_max), *place = place_words(rule);
    printf("  Takes every allocation %s%s", size, place);
    free(size);
    free(place);
    if (rule->index_min != 0 || rule->index_max != UINT64_MAX)
        printf(",\n  but of those only number %s",
               printable_indices_value(rule->index_min, rule->index_max).text);
    puts(";");
}

static void print_merge_words(const struct gps_rule *rule) {
    if (rule->size_max < GPS_MERGE_LEAST) {
        puts("  Takes nothing: allocations below 1 MiB are never merged.");
        return;
    }
    char *kept = kept_words(rule);
    print_taken(rule);
    if (rule->quiet == 0) /* when a kernel's work is done is not known */
        puts("  blocks that copies from the host have filled are held once per GPU, at once;\n"
             "  copies from pageable memory of what is there already are not made;");
    else
        printf("  blocks that %shave not changed for %s are held once per GPU;\n",
               rule->content == GPS_CONTENT_ANY ? "" : "copies from the host filled and that ",
               printable_duration(rule->quiet).text);
    printf("  equal hashes are %s;\n",
           rule->verify == GPS_VERIFY_OFF ? "believed" : "confirmed byte by byte");
    printf("  a block is kept %s.\n", kept);
    free(kept);
    puts("  A kernel that writes into a merged block ends its process with error 700.");
}

static void print_words(const struct gps_rule *rule) {
    (rule->role == GPS_ROLE_MERGE ? print_merge_words : print_share_words)(rule);
}

/* --- the configuration --- */

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
    print_words(rule);
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
