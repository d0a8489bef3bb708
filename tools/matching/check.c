/* check.c - `gpushare check`: checks a configuration, and prints its options and rules. */
#include <sys/stat.h>

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/key.h"
#include "config/rule.h"
#include "config/value.h"
#include "frame_words.h"
#include "run/driver_answer.h"
#include "run/vendor.h"
#include "util/clock.h"

enum { OPTION_ALL, OPTION_QUIET, OPTION_STRICT, OPTION_RUNTIME };

/* --- the effect of a rule, in words --- */

#define SAY(...) term_say(stdout, 2, __VA_ARGS__)

/* "of 64 MiB", "of 1 MiB to 2 MiB", "of any size"; malloc'ed. */
static char *size_words(uint64_t least, uint64_t most) {
    if (most == UINT64_MAX && least <= 1)
        return tool_copy("of any size");
    if (most == UINT64_MAX)
        return tool_format("of %s or more", printable_whole_size(least).text);
    if (least <= 1 && most % 1024 == 1023)
        return tool_format("of less than %s", printable_whole_size(most + 1).text);
    if (least <= 1)
        return tool_format("of %s or less", printable_whole_size(most).text);
    if (least == most)
        return tool_format("of %s", printable_whole_size(least).text);
    return tool_format("of %s to %s", printable_whole_size(least).text,
                       printable_whole_size(most).text);
}

/* " on GPU 1 by code in libx.so of programs named camera"; malloc'ed. */
static char *place_words(const struct gps_rule *rule) {
    TOOL_TEMP char *device = rule->device_kind == GPS_DEVICE_ORDINAL
                                 ? tool_format(" on GPU %u", rule->device_ordinal)
                             : rule->device_kind == GPS_DEVICE_UUID
                                 ? tool_format(" on %s", printable_uuid(rule->device_uuid).text)
                                 : tool_copy("");
    TOOL_TEMP char *caller =
        gps_rule_needs_caller(rule) ? tool_format(" by code in %s", rule->caller) : tool_copy("");
    const bool every = strcmp(rule->program, "*") == 0;
    return tool_format("%s%s of %s%s", device, caller, every ? "every program" : "programs named ",
                       every ? "" : rule->program);
}

/* "the first allocation of 64 MiB of programs named camera"; malloc'ed. */
static char *taken_words(const struct gps_rule *rule) {
    TOOL_TEMP char *size = size_words(rule->size_min, rule->size_max), *place = place_words(rule);
    if (rule->index_max == 0)
        return tool_format("the first allocation %s%s", size, place);
    if (rule->index_min == 0 && rule->index_max == UINT64_MAX)
        return tool_format("every allocation %s%s", size, place);
    return tool_format("allocation number %s (from 0) %s%s",
                       printable_indices_value(rule->index_min, rule->index_max).text, size, place);
}

/* --- an import and its exporters --- */

/* Makes a glob of the name: each placeholder may be any number. */
static void name_glob(const struct gps_rule *rule, char glob[GPS_NAME_BYTES]) {
    const char *at = rule->name;
    while (*at != 0) {
        *glob++ = *at == '{' ? '*' : *at;
        at = *at == '{' ? strchr(at, '}') + 1 : at + 1;
    }
    *glob = 0;
}

static bool names_meet(const struct gps_rule *a, const struct gps_rule *b) {
    char left[GPS_NAME_BYTES], right[GPS_NAME_BYTES];
    name_glob(a, left);
    name_glob(b, right);
    return gps_glob_match(left, b->name) || gps_glob_match(right, a->name);
}

static struct printable range_text(const struct gps_rule *rule) {
    struct printable range = {""};
    struct gps_text text = GPS_TEXT(range.text);
    gps_value_range_text(rule->size_min, rule->size_max, &gps_sizes, &text);
    return range;
}

/* Why two sides of one name never meet; malloc'ed. NULL: they may. */
static char *parting(const struct gps_rule *import, const struct gps_rule *export) {
    if (import->size_min > export->size_max)
        return tool_format("size = %s here asks for more than size = %s of line %u exports",
                           range_text(import).text, range_text(export).text, export->line);
    if (import->device_kind == GPS_DEVICE_UUID && export->device_kind == GPS_DEVICE_UUID &&
        memcmp(import->device_uuid, export->device_uuid, GPS_UUID_BYTES) != 0)
        return tool_format("device here is another GPU than that of line %u", export->line);
    return NULL;
}

/* Whether the import may get what the other rule exports. */
static bool meet(const struct gps_rule *import, const struct gps_rule *export) {
    if (!gps_rule_exports(export) || !names_meet(import, export))
        return false;
    TOOL_TEMP char *why = parting(import, export);
    return !why;
}

/* --- export, import, auto --- */

static void say_taken(const struct gps_rule *rule) {
    TOOL_TEMP char *taken = taken_words(rule);
    if (rule->role == GPS_ROLE_EXPORT)
        SAY("Takes %s: that becomes region %s, for others to import.", taken, rule->name);
    else if (rule->role == GPS_ROLE_IMPORT)
        SAY("Takes %s: that becomes what another program exports as %s.", taken, rule->name);
    else
        SAY("Takes %s: the first process exports it as %s, the others import it.", taken,
            rule->name);
}

static void say_export(const struct gps_rule *rule) {
    TOOL_TEMP char *frames = frame_words(rule);
    if (frames)
        SAY("%s.", frames);
    else if (rule->ready == GPS_READY_FREE)
        SAY("Importers get it when the program frees it; it is kept for the first of "
            "them for %s, the end of the program included.",
            printable_duration(rule->handover).text);
    else
        SAY("Importers get it at once.");
}

static void say_import(const struct gps_rule *rule) {
    SAY("It is waited for up to %s; if it does not come the allocation %s.",
        printable_duration(rule->wait).text,
        rule->missing == GPS_MISSING_FAIL ? "fails: out of memory"
                                          : "is private, and a report says so");
}

/* "10 s after its last user"; malloc'ed. */
static char *kept_words(const struct gps_rule *rule) {
    const bool merge = rule->role == GPS_ROLE_MERGE;
    if (rule->keep == GPS_KEEP_FOREVER)
        return tool_format("until `gpushare drop%s`", merge ? " --merged" : "");
    if (rule->keep == GPS_KEEP_FOR)
        return tool_format("%s after its last user", printable_duration(rule->keep_for).text);
    return tool_copy(merge                          ? "while a process uses it"
                     : rule->keep == GPS_KEEP_USERS ? "as long as a process uses it"
                                                    : "until its owner frees it or ends");
}

static void say_backing(const struct gps_rule *rule) {
    const char *write = rule->access == GPS_ACCESS_RO ? "only read it" : "write it, too";
    TOOL_TEMP char *kept = kept_words(rule);
    if (rule->backing == GPS_RULE_LEGACY)
        SAY("It is memory of cudaMalloc: it ends with its owner, importers write it, too, "
            "and cudaMallocAsync is not matched.");
    else
        SAY("It is memory of cuMemCreate, kept %s; importers may %s. "
            "cudaMallocAsync is matched, too.",
            kept, write);
}

/* Imported memory is as its exporter's rule says, and `backing` of an import only says whether
 * pools are matched. */
static void say_imported(const struct gps_config *config, const struct gps_rule *import) {
    const char *pools = import->backing == GPS_RULE_VMM ? "is matched, too" : "is not matched";
    bool any = false;
    TOOL_EACH(const struct gps_rule, export, config->rules, config->rule_count) {
        if (!meet(import, export))
            continue;
        SAY("It is memory of %s, as line %u says; this program may %s.",
            export->backing == GPS_RULE_VMM ? "cuMemCreate" : "cudaMalloc", export->line,
            export->access == GPS_ACCESS_RO ? "only read it" : "write it, too");
        any = true;
    }
    if (!any)
        SAY("Whether this program may write it, the exporter's rule says.");
    SAY("cudaMallocAsync %s.", pools);
}

static void print_share_words(const struct gps_config *config, const struct gps_rule *rule) {
    say_taken(rule);
    if (rule->role != GPS_ROLE_IMPORT)
        say_export(rule);
    if (rule->role != GPS_ROLE_EXPORT)
        say_import(rule);
    if (rule->role == GPS_ROLE_IMPORT)
        say_imported(config, rule);
    else
        say_backing(rule);
}

/* --- merge --- */

static void print_merge_words(const struct gps_rule *rule) {
    if (rule->size_max < GPS_MERGE_LEAST) {
        puts("  Takes nothing: allocations below 1 MiB are never merged.");
        return;
    }
    const uint64_t least = rule->size_min > GPS_MERGE_LEAST ? rule->size_min : GPS_MERGE_LEAST;
    TOOL_TEMP char *size = size_words(least, rule->size_max), *place = place_words(rule);
    TOOL_TEMP char *kept = kept_words(rule);
    printf("  Takes every allocation %s%s", size, place);
    if (rule->index_min != 0 || rule->index_max != UINT64_MAX)
        printf(",\n  but of those only number %s",
               printable_indices_value(rule->index_min, rule->index_max).text);
    puts(";");
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
    if (rule->overcommit == GPS_OVERCOMMIT_ON)
        puts("  More is allocated than the GPU has; what does not fit when it is used answers 2.");
    if (rule->rdma == GPS_RDMA_ON)
        puts("  A process merges also while it has a device for RDMA open.");
    if (rule->mps == GPS_MPS_ON)
        puts("  Memory is taken also where the GPU is shared by MPS.");
    if (rule->created == GPS_CREATED_ON)
        puts("  Memory of cuMemCreate is taken, too, up to 1 GiB each, while its own device alone "
             "may\n"
             "  write it and it is not exported or mapped twice.");
    puts("  A kernel that writes into a merged block ends its process with error 700.");
    if (rule->mps == GPS_MPS_ON)
        puts("  Under MPS so does every other program on that GPU, with gpushare or without.");
}

/* --- the configuration --- */

struct listing {
    const struct gps_rule *rule;
    bool all;   /* defaults, too */
    size_t any; /* options so far */
};

static void print_option(void *arg, const char *key, const char *value, const char *from,
                         const char *allowed, const char *sentence) {
    struct listing *listing = arg;
    (void)allowed;
    if (!listing->all && strcmp(from, "default") == 0)
        return;
    if (listing->any++ == 0)
        printf("\n%s[gpushare]%s\n", term_colour(TERM_BOLD), term_colour(TERM_PLAIN));
    const int at = printf("  %-12s = %-9s  %-11s  ", key, value, from);
    fputs(term_colour(TERM_DIM), stdout);
    wrap_text(stdout, sentence, (size_t)at);
    fputs(term_colour(TERM_PLAIN), stdout);
}

static void print_key(void *arg, const char *key, const char *value) {
    const struct listing *listing = arg;
    const size_t place = gps_key_place(gps_key_find(GPS_SECTION_REGION, key));
    if (listing->all || listing->rule->lines[place])
        printf("  %-12s = %s\n", key, value);
}

static void print_rule(const struct gps_config *config, const struct gps_rule *rule, bool all) {
    struct listing listing = {.rule = rule, .all = all};
    printf("\n%s[region %s]%s, line %u\n", term_colour(TERM_BOLD), rule->name,
           term_colour(TERM_PLAIN), rule->line);
    gps_rule_each_key(rule, print_key, &listing);
    putchar('\n');
    if (rule->role == GPS_ROLE_MERGE)
        print_merge_words(rule);
    else
        print_share_words(config, rule);
}

static void print_configuration(const struct gps_config *config, bool all) {
    gps_config_each_option(config, print_option, &(struct listing){.all = all});
    for (size_t i = 0; i < config->rule_count; i++)
        print_rule(config, &config->rules[i], all);
}

/* --- warnings of what a configuration may contain, but hardly anybody intends --- */

struct check {
    const char *file;
    const struct gps_config *config;
    unsigned warnings; /* so far */
    bool hip, asked;   /* asked: the driver */
    unsigned cards;    /* that it has; 0: it did not say */
};

__attribute__((format(printf, 3, 4))) static void warn(struct check *check, unsigned line,
                                                       const char *format, ...) {
    TOOL_TEMP char *message = TOOL_VARIADIC(tool_vformat, format);
    check->warnings++;
    term_line(stderr, "%s:%u: warning: %s", check->file, line, message);
}

/* --- an import that is never met --- */

static void check_import(struct check *check, const struct gps_rule *import) {
    TOOL_TEMP char *why = NULL;
    const struct gps_rule *far = NULL;
    bool exported = false;
    TOOL_EACH(const struct gps_rule, export, check->config->rules, check->config->rule_count) {
        if (!gps_rule_exports(export) || !names_meet(import, export))
            continue;
        free(why);
        why = parting(import, export);
        exported = true;
        if (!why && import->size_max > export->size_min / 2)
            return;
        far = why ? far : export;
    }
    if (far)
        warn(check, gps_key_line(import, "size"),
             "[region %s] asks for half of what line %u exports, or less: it gets the beginning of "
             "the region, which is hardly meant",
             import->name, far->line);
    else if (!exported)
        warn(check, import->line,
             "[region %s] is imported, and no rule of this file exports it: give the exporting "
             "program a rule of this name with role = export",
             import->name);
    else if (why)
        warn(check, gps_key_line(import, why), "[region %s] cannot be imported: %s", import->name,
             why);
}

/* With role = auto the first process writes, so none may expect to that cannot. */
static void check_access(struct check *check, const struct gps_rule *rule) {
    if (rule->role != GPS_ROLE_AUTO || rule->access == GPS_ACCESS_RO)
        return;
    TOOL_EACH(const struct gps_rule, export, check->config->rules, check->config->rule_count) {
        if (export->access == GPS_ACCESS_RO && meet(rule, export))
            warn(check, gps_key_line(rule, "access"),
                 "[region %s] does not import what line %u shares read-only: give it backing = vmm "
                 "and access = ro, too",
                 rule->name, export->line);
    }
}

/* --- a rule that another hides --- */

/* Whether a key of the earlier rule leaves nothing to the later. */
static bool glob_covers(const char *earlier, const char *later) {
    return strspn(earlier, "*") == strlen(earlier) || strcmp(earlier, later) == 0;
}

static bool device_covers(const struct gps_rule *earlier, const struct gps_rule *later) {
    if (earlier->device_kind == GPS_DEVICE_ANY)
        return true;
    return earlier->device_kind == later->device_kind &&
           earlier->device_ordinal == later->device_ordinal &&
           memcmp(earlier->device_uuid, later->device_uuid, GPS_UUID_BYTES) == 0;
}

static bool takes_pools(const struct gps_rule *rule) {
    return rule->backing == GPS_RULE_VMM || rule->role == GPS_ROLE_MERGE;
}

/* Whether the earlier rule fits each allocation that the later fits, the program aside. */
static bool fits_all(const struct gps_rule *earlier, const struct gps_rule *later) {
    return glob_covers(earlier->caller, later->caller) && device_covers(earlier, later) &&
           earlier->size_min <= later->size_min && later->size_max <= earlier->size_max &&
           (takes_pools(earlier) || !takes_pools(later));
}

static bool hides(const struct gps_rule *earlier, const struct gps_rule *later) {
    return earlier->index_min == 0 && earlier->index_max == UINT64_MAX &&
           glob_covers(earlier->program, later->program) && fits_all(earlier, later);
}

/* Whether the importing program would export the region itself. */
static bool exports_first(const struct gps_rule *earlier, const struct gps_rule *later) {
    return earlier->role == GPS_ROLE_EXPORT && later->role == GPS_ROLE_IMPORT &&
           names_meet(earlier, later) && gps_glob_match(earlier->program, later->program) &&
           fits_all(earlier, later);
}

static void check_hidden(struct check *check, const struct gps_rule *rule) {
    for (const struct gps_rule *earlier = check->config->rules; earlier < rule; earlier++)
        if (hides(earlier, rule)) {
            warn(check, rule->line,
                 "[region %s] matches nothing: [region %s] in line %u takes all that it fits; put "
                 "this one before it",
                 rule->name, earlier->name, earlier->line);
            return;
        } else if (exports_first(earlier, rule)) {
            const bool same = strcmp(earlier->program, rule->program) == 0;
            warn(check, rule->line,
                 "[region %s] in line %u is for program = %s, too, which would export and not "
                 "import it: %s",
                 earlier->name, earlier->line, rule->program,
                 same
                     ? "one rule with role = auto, in place of both, lets its first process export "
                       "and the others import"
                     : "put this one before it");
            return;
        }
}

/* A file name may have a blank, but few do. */
static void check_program(struct check *check, const struct gps_rule *rule) {
    if (strchr(rule->program, ' '))
        warn(check, gps_key_line(rule, "program"),
             "program = %s has a blank: the name of a program is matched, and not its command "
             "line: cam.py for `python3 cam.py --gpu 0`; GPUSHARE_PROGRAM gives processes names "
             "of their own",
             rule->program);
}

static bool is_any(const char *glob) {
    return strspn(glob, "*") == strlen(glob);
}

/* Also where that is written out. */
static bool takes_all(const struct gps_rule *rule) {
    return is_any(rule->program) && is_any(rule->caller) && rule->size_min <= 1 &&
           rule->size_max == UINT64_MAX;
}

static void check_export(struct check *check, const struct gps_rule *rule) {
    if (rule->role == GPS_ROLE_EXPORT && takes_all(rule))
        warn(check, rule->line,
             "[region %s] takes an allocation of every program, whatever its size: name the "
             "program (program = NAME) or the size",
             rule->name);
}

static void check_merge(struct check *check, const struct gps_rule *rule) {
    if (rule->role != GPS_ROLE_MERGE)
        return;
    if (rule->quiet == 0 && rule->content == GPS_CONTENT_ANY)
        warn(check, gps_key_line(rule, "content"),
             "content = any has no effect in [region %s]: with quiet = 0 only what copies have "
             "filled is merged",
             rule->name);
    if (rule->created == GPS_CREATED_ON && !gps_options_merge_created(&check->config->options))
        warn(check, gps_key_line(rule, "created"),
             "created = on has no effect in [region %s]: with vmm_ipc = on or suspend = on memory "
             "of cuMemCreate is not merged",
             rule->name);
    if (rule->size_max < GPS_MERGE_LEAST)
        warn(check, gps_key_line(rule, "size"),
             "[region %s] takes nothing: allocations below 1 MiB are never merged", rule->name);
    if (takes_all(rule))
        warn(check, rule->line,
             "[region %s] takes all memory of every program, and a kernel that writes into what is "
             "merged ends its process: name the program (program = NAME)",
             rule->name);
}

/* --- keys without effect --- */

static void check_keys(struct check *check, const struct gps_rule *rule) {
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_REGION); key->name; key++) {
        const unsigned line = rule->lines[gps_key_place(key)];
        const char *why = line ? gps_rule_unused(rule, key->name) : NULL;
        if (why)
            warn(check, line, "%s has no effect in [region %s]: %s", key->name, rule->name, why);
    }
}

/* --- GPUs that this machine lacks --- */

static void check_device(struct check *check, const struct gps_rule *rule) {
    if (rule->device_kind != GPS_DEVICE_ORDINAL || rule->device_ordinal == 0 || check->hip)
        return; /* the driver is asked only where it matters */
    if (!check->asked) {
        struct driver_answer answer;
        TOOL_TEMP char *silence = driver_ask(RUNTIME_CUDA, 5 * GPS_SECOND, &answer);
        check->cards = silence || answer.count < 0 ? 0 : (unsigned)answer.count;
    }
    check->asked = true;
    if (check->cards > 0 && rule->device_ordinal >= check->cards)
        warn(check, gps_key_line(rule, "device"),
             "device = %u: [region %s] takes nothing on this machine, whose last GPU is %u",
             rule->device_ordinal, rule->name, check->cards - 1);
}

/* --- options --- */

/* The line in which the file has the key; 0: it does not have it. */
static unsigned line_of(const struct check *check, const char *key) {
    return check->config->lines[gps_key_place(gps_key_find(GPS_SECTION_OPTIONS, key))];
}

static bool is_directory(const char *log) {
    struct stat file;
    return log[strlen(log) - 1] == '/' ||
           (log[0] == '/' && stat(log, &file) == 0 && S_ISDIR(file.st_mode));
}

/* False: it is one, and stderr says so. */
static bool is_no_directory(const struct check *check, const char *key, const char *log) {
    if (!is_directory(log))
        return true;
    TOOL_TEMP char *message =
        tool_format("%s = %s is a directory: name a file in it, such as %%p.log", key, log);
    tool_error_in(NULL, check->file, line_of(check, key), message);
    return false;
}

static bool logs_are_files(const char *file, const struct gps_config *config) {
    const struct check check = {.file = file, .config = config};
    return is_no_directory(&check, "log", config->options.log) &&
           is_no_directory(&check, "event_log", config->options.event_log);
}

/* Only a program knows where a relative path starts, and what %p and %c are: no such is checked. */
static void check_log(struct check *check, const char *key, const char *log) {
    size_t length = strcspn(log, "%");
    while (length > 0 && log[length - 1] != '/')
        length--;
    TOOL_TEMP char *directory = tool_format("%.*s", (int)length, log);
    if (log[0] == '/' && access(log, W_OK) != 0 &&
        (errno != ENOENT || access(directory, W_OK | X_OK) != 0))
        warn(check, line_of(check, key), "%s cannot be written in %s: %s", key, directory,
             strerror(errno));
}

static void check_empty(struct check *check) {
    unsigned lines = 0;
    for (const struct gps_key *key = gps_keys_of(GPS_SECTION_OPTIONS); key->name; key++)
        lines |= check->config->lines[gps_key_place(key)];
    if (!lines && check->config->rule_count == 0)
        warn(check, 1, "the file sets nothing: every option has its default, and there is no rule");
}

static void check_options(struct check *check) {
    const struct gps_options *options = &check->config->options;
    const unsigned timeout = line_of(check, "free_timeout");
    if (timeout && options->on_free != GPS_FREE_WAIT)
        warn(check, timeout, "free_timeout has no effect: it is for on_free = wait");
    if (options->mode != GPS_MODE_SHARE && check->config->rule_count > 0)
        warn(check, line_of(check, "mode"), "mode = %s: no rule is followed",
             options->mode == GPS_MODE_AUDIT ? "audit" : "off");
    check_log(check, "log", options->log);
    check_log(check, "event_log", options->event_log);
}

/* Prints "FILE:LINE: warning: ..." on stderr for each. Returns how many there were. */
static unsigned print_warnings(const char *file, const struct gps_config *config, bool hip) {
    struct check check = {.file = file, .config = config, .hip = hip};
    check_empty(&check);
    check_options(&check);
    TOOL_EACH(const struct gps_rule, rule, config->rules, config->rule_count) {
        if (rule->role == GPS_ROLE_IMPORT)
            check_import(&check, rule);
        check_access(&check, rule);
        check_program(&check, rule);
        check_export(&check, rule);
        check_merge(&check, rule);
        check_hidden(&check, rule);
        check_keys(&check, rule);
        check_device(&check, rule);
    }
    return check.warnings;
}

/* --- the verb --- */

static int run_check(const struct tool_args *args) {
    struct gps_config config;
    enum runtime runtime;
    if (!runtime_choose(args->values[OPTION_RUNTIME], NULL, &runtime) ||
        gps_config_read_file(&config, args->operands[0], tool_error_in, NULL) != 0)
        return TOOL_FAILED;
    /* what only programs of CUDA can be given is an error where the runtime is HIP */
    if (runtime != RUNTIME_CUDA &&
        gps_config_check_plain(&config, NULL, NULL, tool_error_in, NULL) != 0) {
        gps_config_free(&config);
        return TOOL_FAILED;
    }
    if (!logs_are_files(args->operands[0], &config)) {
        gps_config_free(&config);
        return TOOL_FAILED;
    }
    if (!args->values[OPTION_QUIET]) {
        printf("%s: OK: %zu rule%s\n", args->operands[0], config.rule_count,
               config.rule_count == 1 ? "" : "s");
        print_configuration(&config, args->values[OPTION_ALL]);
        fflush(stdout);
    }
    const unsigned warnings = print_warnings(args->operands[0], &config, runtime == RUNTIME_HIP);
    gps_config_free(&config);
    return warnings && args->values[OPTION_STRICT] ? TOOL_FAILED : TOOL_OK;
}

const struct tool_verb tool_verb_check = {
    .name = "check",
    .operands = "FILE",
    .summary = "check a configuration and print what it says",
    .details = "Prints what the file sets, and what each rule does, in words. The environment and "
               "keys without effect in a rule are left out.\n\n"
               "Errors go to stderr as FILE:LINE: what is wrong, and what is allowed; then "
               "warnings of what is allowed and hardly meant: an import that nobody exports, "
               "sides whose sizes, backings or devices cannot meet, or whose sizes are far apart, "
               "a rule that an earlier one hides, a key without effect, a GPU that this machine "
               "lacks, role = merge or export for "
               "every program, a file that sets nothing, a log that cannot be written here.\n"
               "The exit status is 1 after an error.\n",
    .options = {{"all", 'a', NULL, "print the defaults of all other keys, too"},
                {"quiet", 'q', NULL, "print only errors and warnings"},
                {"strict", 0, NULL, "exit with 1 also after a warning"},
                {"runtime", 0, "NAME",
                 "cuda or hip: whose programs it is for, instead of what the machine has; with "
                 "hip, role = merge, backing = vmm, open_cache and vmm_ipc are errors"}},
    .operands_min = 1,
    .operands_max = 1,
    .run = run_check,
};
