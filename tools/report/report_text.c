/*
 * report_text.c - a report as text, in the manner of the library's own reports
 * (shim/log/format_text.c).
 */
#include <ctype.h>

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "log/log.h"
#include "report.h"
#include "symbols/symbol.h"
#include "symbols/user_frame.h"

#define MARGIN       "========= "
#define INDENT       MARGIN "    "
#define FRAME_MARGIN INDENT "    "
#define SHORT_MAX    3 /* a report with more findings has a table of contents */
#define NAMED_MAX    8 /* processes in one list: many workers can have the same finding */

struct printer {
    FILE *out;
    const struct report *report;
};

enum term_colour report_colour(enum gps_level level) {
    static const enum term_colour colours[] = {TERM_BOLD, TERM_YELLOW, TERM_RED};
    return colours[level];
}

/* --- stacks --- */

/* "main at app.c:42", the known part of it; malloc'ed. */
static char *place_text(const struct symbol_place *place) {
    char line[16] = "";
    if (place->line > 0)
        snprintf(line, sizeof(line), ":%u", place->line);
    TOOL_TEMP char *function =
        place->function ? short_name_function(place->function) : tool_copy("");
    return place->file
               ? tool_format("%s%sat %s%s", function, place->function ? " " : "", place->file, line)
               : tool_copy(function);
}

/* "#0 0x1b2c main at app.c:42 in /path/app"; a call that was inlined has a line of its own. A
 * Python frame is shorter: "#0 release at /path/cam.py:12". */
static void print_frame(FILE *out, size_t number, const struct log_frame *frame,
                        const struct symbol *symbol) {
    const char *note = symbol->note;
    for (size_t i = 0; i < symbol->count; i++) {
        TOOL_TEMP char *place = place_text(&symbol->places[i]);
        const char *gap = place[0] ? " " : "";
        if (frame->function)
            term_line(out, FRAME_MARGIN "#%zu %s", number, place);
        else if (i + 1 < symbol->count)
            term_line(out, FRAME_MARGIN "#%zu 0x%" PRIx64 " %s%s(inlined)", number, frame->offset,
                      place, gap);
        else
            term_line(out, FRAME_MARGIN "#%zu 0x%" PRIx64 " %s%sin %s%s%s%s", number, frame->offset,
                      place, gap, tool_or(frame->module, "?"), note ? " (" : "", tool_or(note, ""),
                      note ? ")" : "");
    }
}

/* How many frames of Python's interpreter end the stack, if it does not end in fewer than two. */
static size_t interpreter_frames(const struct log_stack *stack, size_t shown) {
    size_t count = 0;
    while (count < shown) {
        const char *module = stack->frames[shown - count - 1].module;
        const char *base = module ? basename(module) : "";
        if (strncmp(base, "libpython", 9) != 0 && strncmp(base, "python", 6) != 0)
            break;
        count++;
    }
    return count > 1 ? count : 0;
}

/* Prints the frames from the innermost on, without those that start a program. */
static void print_stack(const struct printer *to, const struct log_stack *stack) {
    struct symbols *symbols = to->report->symbols;
    const size_t all = user_frame_shown(stack, symbols), folded = interpreter_frames(stack, all);
    for (size_t i = 0; i < all - folded; i++)
        print_frame(to->out, i, &stack->frames[i], symbol_find(symbols, &stack->frames[i]));
    if (folded > 0)
        fprintf(to->out, FRAME_MARGIN "(and %zu of the Python interpreter)\n", folded);
}

/* --- the parts of a finding --- */

/* "app (pid 7, rank 1)", or with its arguments "app (pid 7: --gpu 0)"; malloc'ed. */
static char *process_text(const struct printer *to, const struct log_process *process,
                          bool arguments) {
    const struct printable shown = printable_arguments(arguments ? process->arguments : NULL);
    char namespace[48] = "", rank[32] = "";
    if (to->report->aggregate.namespaces && process->pid_ns != 0)
        snprintf(namespace, sizeof(namespace), " in namespace %" PRId64, process->pid_ns);
    if (process->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, process->rank);
    return tool_format("%s (pid %" PRId64 "%s%s%s%s)", tool_or(process->command, "?"), process->pid,
                       namespace, rank, shown.text[0] ? ": " : "", shown.text);
}

/* Whether another process of the group has the same name; then arguments tell the two apart. */
static bool group_has_equal_name(const struct aggregate_group *group,
                                 const struct log_process *of) {
    for (size_t i = 0; i < group->process_count; i++) {
        const struct log_process *other = &group->processes[i]->facts;
        if (other != of && strcmp(tool_or(other->command, ""), tool_or(of->command, "")) == 0)
            return true;
    }
    return false;
}

static void print_heading(const struct printer *to, const struct log_line *line) {
    static const char *const names[] = {"INFO", "WARNING", "ERROR"};
    TOOL_TEMP char *process = process_text(to, &line->process, false);
    TOOL_TEMP char *title = tool_format("%s%s%s, by %s", line->finding, line->api ? " in " : "",
                                        tool_or(line->api, ""), process);
    TOOL_TEMP char *clean = term_clean(title);
    TOOL_TEMP char *heading = tool_format(
        MARGIN "%sGPUSHARE %s%s: %s", term_colour_on(to->out, report_colour(line->level)),
        names[line->level], term_colour_on(to->out, TERM_PLAIN), clean);
    wrap_line(to->out, heading);
}

static void print_line(const struct printer *to, const char *before, const char *text) {
    if (text)
        term_line(to->out, INDENT "%s%s", before, text);
}

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0, context 0x55...": the known facts. */
static void print_memory(const struct printer *to, const struct log_line *line) {
    TOOL_TEMP char *facts = NULL;
    if (line->ptr)
        tool_list(&facts, "at %s", line->ptr);
    if (line->size != 0)
        tool_list(&facts, "%s", printable_exact_size((uint64_t)line->size).text);
    if (line->device >= 0)
        tool_list(&facts, "GPU %" PRId64, line->device);
    if (line->context)
        tool_list(&facts, "context %s", line->context);
    print_line(to, "", facts);
}

static void print_region(const struct printer *to, const struct log_line *line) {
    if (line->name && line->region)
        term_line(to->out, INDENT "region %s (id %s)", line->name, line->region);
    else
        print_line(to, line->name ? "region " : "region with id ",
                   tool_or(line->name, line->region));
}

/* "17 times, from ... to ..., by 2 processes: app (pid 7), ..." The times are those of calls. */
static void print_count(const struct printer *to, const struct aggregate_group *group) {
    TOOL_TEMP char *names = NULL;
    char more[48] = "";
    if (group->count < 2)
        return;
    for (size_t i = 0; i < group->process_count && i < NAMED_MAX; i++) {
        const struct log_process *facts = &group->processes[i]->facts;
        TOOL_TEMP char *process = process_text(to, facts, group_has_equal_name(group, facts));
        tool_list(&names, "%s", process);
    }
    if (group->process_count > NAMED_MAX)
        snprintf(more, sizeof(more), " (and %zu more)", group->process_count - NAMED_MAX);
    TOOL_TEMP char *by = group->process_count < 2 ? tool_copy("")
                                                  : tool_format(", by %zu processes: %s%s",
                                                                group->process_count, names, more);
    if (group->first->api)
        term_line(to->out, INDENT "%" PRIu64 " times, from %s to %s%s", group->count,
                  group->first->ts, group->last, by);
    else /* judged at an end: a line tells when it was done */
        term_line(to->out, INDENT "%" PRIu64 " times%s", group->count, by);
}

static void print_others(const struct printer *to, const struct log_line *line) {
    for (size_t i = 0; i < line->others.count && i < NAMED_MAX; i++) {
        const struct log_event *other = &line->others.events[i];
        TOOL_TEMP char *process = process_text(to, &other->process, false);
        term_line(to->out, INDENT "other process: %s%s%s", process, other->ts ? ", since " : "",
                  tool_or(other->ts, ""));
    }
    if (line->others.count > NAMED_MAX)
        fprintf(to->out, INDENT "(and %zu more)\n", line->others.count - NAMED_MAX);
}

/* --- earlier events --- */

/* "Allocated at:", or "Freed by producer (pid 7), 2026-11-21T12:00:00.000000Z, at:" where that was
 * another process. */
static void print_prior(const struct printer *to, const struct log_process *reporter,
                        const struct log_event *prior) {
    const char *what = prior->what && prior->what[0] != 0 ? prior->what : "before";
    const bool own =
        reporter->pid == prior->process.pid && reporter->pid_ns == prior->process.pid_ns;
    TOOL_TEMP char *process = own ? NULL : process_text(to, &prior->process, false);
    const char *before_time = !prior->ts ? "" : own ? " " : ", ";
    const char *end = prior->stack.count == 0 ? "" : prior->ts ? ", at:" : " at:";
    term_line(to->out, INDENT "%c%s%s%s%s%s%s", toupper((unsigned char)what[0]), what + 1,
              own ? "" : " by ", tool_or(process, ""), before_time, tool_or(prior->ts, ""), end);
    print_stack(to, &prior->stack);
}

void report_text_group(FILE *out, const struct report *report,
                       const struct aggregate_group *group) {
    const struct printer printer = {out, report}, *const to = &printer;
    const struct log_line *line = group->first;
    print_heading(to, line);
    print_line(to, "", line->message);
    if (line->process.arguments && *line->process.arguments)
        print_line(to, "arguments of this process: ", line->process.arguments);
    print_memory(to, line);
    print_region(to, line);
    print_line(to, "", line->detail);
    print_count(to, group);
    print_others(to, line);
    if (line->stack.count > 0)
        fputs(INDENT "Host frames:\n", to->out);
    print_stack(to, &line->stack);
    if (runtime_frames_hidden(line, to->report->symbols))
        term_line(to->out,
                  INDENT "%s has no symbols: if a CUDA runtime is linked into it, %s is a "
                         "call of that, and the first frames are its own",
                  basename(line->stack.frames[0].module), line->api);
    for (size_t i = 0; i < line->prior.count; i++)
        print_prior(to, &line->process, &line->prior.events[i]);
    print_line(to, "Hint: ", line->hint);
    fputs("=========\n", to->out);
}

/* --- a table of contents before a long report --- */

/* "denoise at five.c:87", as much as is known of it; malloc'ed. */
static char *report_line_place(const struct log_line *line, struct symbols *symbols) {
    const struct log_stack *stack = aggregate_stack(line);
    const struct symbol_place *place = user_frame_place(stack, symbols);
    const struct log_frame *frame = user_frame_find(stack);
    if (!frame || !place)
        return tool_format("in %s", tool_or(line->process.command, "?"));
    TOOL_TEMP char *function = short_name_function(tool_or(place->bare, "?"));
    if (place->file)
        return tool_format("%s at %s:%u", function, basename(place->file), place->line);
    if (place->bare)
        return tool_format("%s in %s", function, tool_or(log_frame_module(frame), "?"));
    return tool_format("%s+0x%" PRIx64, basename(frame->module), frame->offset);
}

static void contents_add_row(struct table *table, const struct aggregate_group *group,
                             struct symbols *symbols) {
    const struct log_line *line = group->first;
    TOOL_TEMP char *place = report_line_place(line, symbols);
    table_cell(table, TERM_PLAIN, "%" PRIu64 "x", group->count);
    table_cell(table, report_colour(line->level), "%-7s", gps_level_name(line->level));
    table_cell(table, TERM_PLAIN, "%s", line->finding);
    table_cell(table, TERM_PLAIN, "%s", tool_or(line->api, "-"));
    table_cell(table, TERM_PLAIN, "%s", place);
}

static void add_rows(struct table *table, const struct report *report, enum gps_level level) {
    for (size_t i = 0; i < report->aggregate.count; i++) {
        const struct aggregate_group *group = report->aggregate.groups[i];
        if (!group->suppressed && group->first->level == level)
            contents_add_row(table, group, report->symbols);
    }
}

/* Errors first. */
static void print_contents(FILE *out, const struct report *report, uint64_t findings) {
    static const struct table_column columns[] = {
        {NULL, TABLE_CLOSE}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    struct table table = TABLE(columns);
    for (int level = GPS_LEVEL_ERROR; level >= GPS_LEVEL_INFO; level--)
        add_rows(&table, report, (enum gps_level)level);
    fprintf(out, MARGIN "GPUSHARE CONTENTS: %" PRIu64 " findings\n", findings);
    table_print(out, &table, INDENT);
    fputs("=========\n", out);
}

/* --- the end --- */

/* "2 errors, 1 warning" of the levels that occur; malloc'ed. */
static char *levels_text(const struct aggregate_sums *sums) {
    char *list = NULL;
    for (int level = GPS_LEVEL_ERROR; level >= GPS_LEVEL_INFO; level--) {
        const uint64_t count = sums->findings[level];
        if (count > 0)
            tool_list(&list, "%" PRIu64 " %s%s", count, gps_level_name((enum gps_level)level),
                      count > 1 && level > GPS_LEVEL_INFO ? "s" : "");
    }
    return list;
}

/* Adds "2 left out as known in libnccl.so.2 (...)", each library once. */
static void list_known(char **list, const struct aggregate *aggregate) {
    for (size_t i = 0; i < aggregate->count; i++) {
        const char *known = aggregate->groups[i]->known;
        size_t before = 0, all = 0;
        for (size_t j = 0; known && j < aggregate->count; j++) {
            const bool same = aggregate->groups[j]->known == known;
            before += same && j < i;
            all += same;
        }
        if (known && before == 0)
            tool_list(list, "%zu left out as known in %s (--no-default-suppressions shows them)",
                      all, known);
    }
}

/* "3 findings (2 errors, 1 warning), 17 occurrences, 2 processes; 2 processes used CUDA, ..." */
static void print_summary(FILE *out, const struct report *report,
                          const struct aggregate_sums *sums) {
    TOOL_TEMP char *text =
        tool_format("%" PRIu64 " finding%s", sums->all, sums->all == 1 ? "" : "s");
    if (sums->all > 0) {
        TOOL_TEMP char *levels = levels_text(sums), *findings = text;
        text = tool_format("%s (%s), %" PRIu64 " occurrence%s, %" PRIu64 " process%s", findings,
                           levels, sums->occurrences, sums->occurrences == 1 ? "" : "s",
                           sums->processes, sums->processes == 1 ? "" : "es");
    }
    if (sums->suppressed > 0)
        tool_list(&text, "%" PRIu64 " suppressed", sums->suppressed);
    list_known(&text, &report->aggregate);
    term_line(out, MARGIN "GPUSHARE SUMMARY: %s%s%s", text, report->watched ? "; " : "",
              tool_or(report->watched, ""));
}

void report_text(FILE *out, const struct report *report) {
    const struct aggregate_sums sums = aggregate_sums(&report->aggregate);
    if (sums.all > SHORT_MAX)
        print_contents(out, report, sums.all);
    for (size_t i = 0; i < report->aggregate.count; i++)
        if (!report->aggregate.groups[i]->suppressed)
            report_text_group(out, report, report->aggregate.groups[i]);
    if (report->unwatched)
        term_line(out, MARGIN "not looked at: %s", report->unwatched);
    print_summary(out, report, &sums);
}
