/* check_words.c - see check_words.h. */
#include "check_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"

#define INDENT 2

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

static const char *kept_words(const struct gps_rule *rule) {
    switch (rule->keep) {
    case GPS_KEEP_USERS:
        return "as long as a process uses it";
    case GPS_KEEP_FOREVER:
        return "until `gpushare drop`";
    case GPS_KEEP_FOR:
        return "after its last user";
    default:
        return "until its owner frees it or ends";
    }
}

static void say_backing(const struct gps_rule *rule) {
    const char *write = rule->access == GPS_ACCESS_RO ? "only read it" : "write it, too";
    const bool timed = rule->keep == GPS_KEEP_FOR;
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
        say(tool_format("It is memory of cuMemCreate, kept %s%s%s; importers may %s. "
                        "cudaMallocAsync is matched, too.",
                        timed ? printable_duration(rule->keep_for).text : "", timed ? " " : "",
                        kept_words(rule), write));
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

static void print_merge_words(const struct gps_rule *rule) {
    const bool for_time = rule->keep == GPS_KEEP_FOR;
    if (rule->size_max < GPS_MERGE_LEAST) {
        puts("  Takes nothing: allocations below 1 MiB are never merged.");
        return;
    }
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
    printf("  a block is kept %s%s%s.\n", for_time ? printable_duration(rule->keep_for).text : "",
           for_time ? " " : "", kept_until(rule));
    puts("  A kernel that writes into a merged block ends its process with error 700.");
}

void check_print_words(const struct gps_rule *rule) {
    (rule->role == GPS_ROLE_MERGE ? print_merge_words : print_share_words)(rule);
}
