/*
 * report_text.c - a story as text, in the manner of the library's own reports (shim/log/logline.c).
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "report.h"
#include "term.h"
#include "text.h"

#define MARGIN "========= "
#define INDENT MARGIN "    "

#define PROCESSES_MAX 4 /* that are named: a farm of workers makes one mistake in all of them */

/* What every part needs. */
struct printer {
    FILE *out;
    const struct report *report;
};

/* --- the parts of a finding --- */

static void print_process(const struct printer *to, const struct log_process *process) {
    term_plain(to->out, process->command);
    fprintf(to->out, " (pid %" PRId64, process->pid);
    if (to->report->story.namespaces && process->pid_ns != 0)
        fprintf(to->out, " in namespace %" PRId64, process->pid_ns);
    fputs(")", to->out);
}

static void print_heading(const struct printer *to, const struct log_line *line) {
    static const char *const names[] = {"INFO", "WARNING", "ERROR"};
    static const enum term_colour colours[] = {TERM_BOLD, TERM_YELLOW, TERM_RED};
    fprintf(to->out, MARGIN "%sGPUSHARE %s%s: ", term_colour_on(to->out, colours[line->level]),
            names[line->level], term_colour_on(to->out, TERM_PLAIN));
    term_plain(to->out, line->finding);
    if (line->api != NULL) {
        fputs(" in ", to->out);
        term_plain(to->out, line->api);
    }
    fputs(", by ", to->out);
    print_process(to, &line->process);
    fputs("\n", to->out);
}

static void print_line(const struct printer *to, const char *before, const char *text) {
    if (text == NULL)
        return;
    fprintf(to->out, INDENT "%s", before);
    term_plain(to->out, text);
    fputs("\n", to->out);
}

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0": what of it is known. */
static void print_memory(const struct printer *to, const struct log_line *line) {
    const char *before = INDENT;
    char size[32];
    struct gps_text text = GPS_TEXT(size);
    if (line->ptr != NULL) {
        fputs(INDENT "at ", to->out);
        term_plain(to->out, line->ptr);
        before = ", ";
    }
    if (line->size != 0) {
        gps_text_size(&text, (uint64_t)line->size);
        fprintf(to->out, "%s%s", before, size);
        if (line->size >= 1024)
            fprintf(to->out, " (%" PRId64 " bytes)", line->size);
        before = ", ";
    }
    if (line->device >= 0) {
        fprintf(to->out, "%sGPU %" PRId64, before, line->device);
        before = ", ";
    }
    if (before[0] == ',')
        fputs("\n", to->out);
}

static void print_region(const struct printer *to, const struct log_line *line) {
    if (line->name == NULL && line->region == NULL)
        return;
    fputs(INDENT "region ", to->out);
    if (line->name != NULL)
        term_plain(to->out, line->name);
    if (line->region != NULL) {
        fputs(line->name != NULL ? " (id " : "with id ", to->out);
        term_plain(to->out, line->region);
        fputs(line->name != NULL ? ")" : "", to->out);
    }
    fputs("\n", to->out);
}

/* ", by 3 processes: app (pid 7), ..." */
static void print_processes(const struct printer *to, const struct story_group *group) {
    if (group->process_count < 2)
        return;
    fprintf(to->out, ", by %zu processes: ", group->process_count);
    for (size_t i = 0; i < group->process_count && i < PROCESSES_MAX; i++) {
        fputs(i > 0 ? ", " : "", to->out);
        print_process(to, &group->processes[i]);
    }
    if (group->process_count > PROCESSES_MAX)
        fputs(", ...", to->out);
}

/* "17 times, from ... to ..., by 2 processes: ..." */
static void print_count(const struct printer *to, const struct story_group *group) {
    if (group->count < 2)
        return;
    fprintf(to->out, INDENT "%" PRIu64 " times, from %s to %s", group->count, group->first->ts,
            group->last);
    print_processes(to, group);
    fputs("\n", to->out);
}

static void print_others(const struct printer *to, const struct log_line *line) {
    for (size_t i = 0; i < line->others.count; i++) {
        const struct log_event *other = &line->others.events[i];
        fputs(INDENT "other process: ", to->out);
        print_process(to, &other->process);
        if (other->ts != NULL) {
            fputs(", since ", to->out);
            term_plain(to->out, other->ts);
        }
        fputs("\n", to->out);
    }
}

/* --- stacks --- */

/* "main at app.c:42": what of it is known, with a blank behind it. */
static void print_place(const struct printer *to, const struct symbol_place *place) {
    if (place->function != NULL) {
        term_plain(to->out, place->function);
        fputs(" ", to->out);
    }
    if (place->file == NULL)
        return;
    fputs("at ", to->out);
    term_plain(to->out, place->file);
    if (place->line > 0)
        fprintf(to->out, ":%u", place->line);
    fputs(" ", to->out);
}

/* "#0 0x1b2c main at app.c:42 in /path/app"; a call that was inlined has a line of its own. */
static void print_frame(const struct printer *to, size_t number, const struct log_frame *frame) {
    const struct symbol *symbol = symbol_find(to->report->symbols, frame);
    for (size_t i = 0; i < symbol->count; i++) {
        fprintf(to->out, INDENT "    #%zu 0x%" PRIx64 " ", number, frame->offset);
        print_place(to, &symbol->places[i]);
        if (i + 1 < symbol->count)
            fputs("(inlined)\n", to->out);
    }
    fputs("in ", to->out);
    term_plain(to->out, frame->module);
    fprintf(to->out, symbol->note != NULL ? " (%s)\n" : "%s\n",
            symbol->note != NULL ? symbol->note : "");
}

static void print_frames(const struct printer *to, const struct log_stack *stack) {
    for (size_t i = 0; i < stack->count; i++)
        print_frame(to, i, &stack->frames[i]);
}

static bool is_same(const struct log_process *a, const struct log_process *b) {
    return a->pid == b->pid && a->pid_ns == b->pid_ns;
}

/* "Allocated at:", or "Freed by producer (pid 7) at:" where that was another process. */
static void print_prior(const struct printer *to, const struct log_line *line,
                        const struct log_event *prior) {
    const char *what = prior->what != NULL && prior->what[0] != 0 ? prior->what : "before";
    fprintf(to->out, INDENT "%c", toupper((unsigned char)what[0]));
    term_plain(to->out, what + 1);
    if (!is_same(&line->process, &prior->process)) {
        fputs(" by ", to->out);
        print_process(to, &prior->process);
    }
    if (prior->stack.count > 0)
        fputs(" at:", to->out);
    else if (prior->ts != NULL)
        fputs(", ", to->out);
    if (prior->stack.count == 0 && prior->ts != NULL)
        term_plain(to->out, prior->ts);
    fputs("\n", to->out);
    print_frames(to, &prior->stack);
}

static void print_group(const struct printer *to, const struct story_group *group) {
    const struct log_line *line = group->first;
    print_heading(to, line);
    print_line(to, "", line->message);
    print_memory(to, line);
    print_region(to, line);
    print_line(to, "", line->detail);
    print_count(to, group);
    print_others(to, line);
    if (line->stack.count > 0)
        fputs(INDENT "Host frames:\n", to->out);
    print_frames(to, &line->stack);
    for (size_t i = 0; i < line->prior.count; i++)
        print_prior(to, line, &line->prior.events[i]);
    print_line(to, "Hint: ", line->hint);
    fputs("=========\n", to->out);
}

/* --- the end --- */

static void print_number(FILE *out, const char *before, uint64_t count, const char *what) {
    fprintf(out, "%s%" PRIu64 " %s%s", before, count, what, count == 1 ? "" : "s");
}

/* "3 findings (2 errors, 1 warning), 17 occurrences, 2 processes" */
static void print_summary(FILE *out, const struct story_sums *sums) {
    uint64_t errors = sums->findings[GPS_LEVEL_ERROR];
    uint64_t warnings = sums->findings[GPS_LEVEL_WARNING];
    uint64_t infos = sums->findings[GPS_LEVEL_INFO];
    const char *before = " (";
    print_number(out, MARGIN "GPUSHARE SUMMARY: ", errors + warnings + infos, "finding");
    if (errors > 0) {
        print_number(out, before, errors, "error");
        before = ", ";
    }
    if (warnings > 0) {
        print_number(out, before, warnings, "warning");
        before = ", ";
    }
    if (infos > 0)
        fprintf(out, "%s%" PRIu64 " info", before, infos);
    if (errors + warnings + infos > 0) {
        print_number(out, "), ", sums->occurrences, "occurrence");
        fprintf(out, ", %" PRIu64 " process%s", sums->processes, sums->processes == 1 ? "" : "es");
    }
    if (sums->suppressed > 0)
        fprintf(out, ", %" PRIu64 " suppressed", sums->suppressed);
    fputs("\n", out);
}

void report_text(FILE *out, const struct report *report) {
    const struct printer printer = {out, report};
    const struct story_sums sums = story_sums(&report->story);
    for (size_t i = 0; i < report->story.count; i++)
        if (!report->story.groups[i]->suppressed)
            print_group(&printer, report->story.groups[i]);
    print_summary(out, &sums);
}
