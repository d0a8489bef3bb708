/* top.c - `gpushare top`: who uses how much GPU memory, as it changes. */
#include <time.h>

#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"
#include "screen.h"
#include "usage_text.h"
#include "util/clock.h"

enum { OPTION_DELAY, OPTION_SORT, OPTION_REVERSE, OPTION_ONCE, OPTION_JSON };

#define DELAY (2 * GPS_SECOND)

/* The text is a number of seconds, or has a unit. */
static bool parse_delay(const char *text, uint64_t *delay) {
    char *end;
    const double seconds = strtod(text, &end);
    if (end == text || *end != 0) {
        if (!gps_parse_duration(text, delay))
            return false;
    } else {
        *delay = seconds >= 0.1 && seconds <= 3600 ? (uint64_t)(seconds * (double)GPS_SECOND) : 0;
    }
    return *delay >= GPS_SECOND / 10 && *delay <= 3600 * GPS_SECOND;
}

static void print_table(void *unused, struct table *table) {
    (void)unused;
    table_print(stdout, table, "");
}

static void top_print_text(const struct usage *usage) {
    const size_t columns = wrap_columns(stdout);
    TOOL_TEMP char *totals = usage_text_totals(usage), *levels = usage_text_levels(usage);
    const struct usage_layout layout = {
        .narrow = columns > 0 && columns < USAGE_WIDE, .mark = "...", .print = print_table};
    puts(totals);
    if (usage->accounting.gpu_count > 1) {
        putchar('\n');
        usage_text_gpus(usage, &layout);
    }
    if (usage->process_count > 0)
        putchar('\n');
    usage_text_processes(usage, &layout);
    if (usage->accounting.gpu_count > 0)
        putchar('\n');
    usage_text_regions(usage, &layout);
    if (usage->frames_count > 0)
        putchar('\n');
    usage_text_frames(usage, &layout);
    putchar('\n');
    wrap_line(stdout, levels);
    usage_text_findings(usage, &layout, LOG_TAIL_KEPT);
}

/* Whole frames a second take a second look. */
static bool top_read_once(struct usage *usage) {
    static const struct timespec pause = {.tv_nsec = GPS_SECOND / 2};
    if (!usage_read(usage))
        return false;
    if (usage->frames_count == 0)
        return true;
    nanosleep(&pause, NULL);
    return usage_read(usage);
}

static int once(struct usage *usage, struct usage_order order, bool json) {
    if (!top_read_once(usage))
        return TOOL_FAILED;
    usage_sort(usage, order);
    if (json)
        json_tree_print(stdout, usage_json(usage));
    else
        top_print_text(usage);
    return TOOL_OK;
}

static bool find_key(const char *name, enum usage_key *key) {
    TOOL_TEMP char *known = NULL;
    for (*key = 0; *key < USAGE_KEYS; ++*key) {
        if (strcmp(name, usage_keys[*key]) == 0)
            return true;
        tool_list(&known, "%s", usage_keys[*key]);
    }
    return tool_error("--sort '%s' is no key; allowed: %s", name, known);
}

static bool top_parse(const struct tool_args *args, struct usage_order *order, uint64_t *delay) {
    const char *key = args->values[OPTION_SORT], *seconds = args->values[OPTION_DELAY];
    order->reverse = args->values[OPTION_REVERSE];
    if (key && !find_key(key, &order->key))
        return false;
    if (seconds && !parse_delay(seconds, delay))
        return tool_error(
            "--delay '%s' is no time; allowed: 0.1 to 3600 seconds, or 500ms, 2s, 1min ...",
            seconds);
    if (args->values[OPTION_JSON] && !args->values[OPTION_ONCE])
        return tool_error("--json needs --once");
    return true;
}

static int run_top(const struct tool_args *args) {
    static struct usage usage;
    struct usage_order order = {.key = USAGE_PROPORTIONAL};
    uint64_t delay = DELAY;
    if (!top_parse(args, &order, &delay))
        return TOOL_USAGE;
    usage_begin(&usage, args->operands, (size_t)args->operand_count);
    const int status = args->values[OPTION_ONCE] ? once(&usage, order, args->values[OPTION_JSON])
                                                 : screen_run(&usage, order, delay);
    usage_end(&usage);
    return status;
}

const struct tool_verb tool_verb_top = {
    .name = "top",
    .operands = "[LOG...]",
    .summary = "show who uses how much GPU memory, as it changes",
    .details = "Of a process: OWN is what it alone has, SHARED what others have, too, "
               "PROPORTIONAL (PROP) its own and its part of what is shared, SAVED what it would "
               "take more without sharing. Memory that is not shared by gpushare or by IPC "
               "handles counts nowhere, but in DRIVER, which is what nvidia-smi says, where "
               "libnvidia-ml.so.1 is; FAIR is that with shared memory split among its holders, "
               "not counted as its exporter's. MERGING is off by `gpushare merge off`, or no, "
               "for a reason that `gpushare show` tells.\n\n"
               "Of whole frames (key frames): which FRAME who writes them has published, and each "
               "reader has, and its AGE; how many were written, or read, in A SECOND and how many "
               "LEFT OUT since the look before (with --once half a second), and how often it was "
               "LATE that others were waited for in vain.\n\n"
               "Findings come from LOGs, which are files of log_format = jsonl or directories of "
               "*.jsonl files, or else from those that the configuration names.\n\n"
               "Keys: q quits, a letter of the last line sorts, r turns the order round, + and - "
               "change the delay, the space bar looks at once, page keys scroll, arrows choose a "
               "row and enter tells what `show` says of it, / filters, ? explains the keys, "
               "escape goes back.\n\n"
               "The exit status is 1 without a terminal that has a screen.\n",
    .options =
        {{"delay", 'd', "SECONDS", "look again after so long, 0.1 to 3600, or as 500ms (2)"},
         {"sort", 's', "KEY",
          "proportional, own, shared, saved, driver, name or pid (proportional): the most first"},
         {"reverse", 'r', NULL, "sort the other way"},
         {"once", '1', NULL, "print it once, as text"},
         {"json", 0, NULL, "with --once: one object, for scripts"}},
    .operands_max = 1000000,
    .run = run_top,
};
