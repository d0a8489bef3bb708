/*
 * report_text.c - a report as text, in the manner of the library's own reports
 * (shim/log/format_text.c).
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli/printable.h"
#include "log/log.h"
#include "report_format.h"

#define NAMED_MAX 8 /* processes in one list: all of many workers can make one mistake */

struct printer {
    FILE *out;
    const struct report *report;
};

/* --- the parts of a finding --- */

static void print_process(const struct printer *to, const struct log_process *process) {
    term_plain(to->out, process->command);
    fprintf(to->out, " (pid %" PRId64, process->pid);
    if (to->report->aggregate.namespaces && process->pid_ns != 0)
        fprintf(to->out, " in namespace %" PRId64, process->pid_ns);
    fputs(")", to->out);
}

static void print_heading(const struct printer *to, const struct log_line *line) {
    static const char *const names[] = {"INFO", "WARNING", "ERROR"};
    fprintf(to->out, REPORT_MARGIN "%sGPUSHARE %s%s: ",
            term_colour_on(to->out, report_level_colour(line->level)), names[line->level],
            term_colour_on(to->out, TERM_PLAIN));
    term_plain(to->out, line->finding);
    if (line->api) {
        fputs(" in ", to->out);
        term_plain(to->out, line->api);
    }
    fputs(", by ", to->out);
    print_process(to, &line->process);
    fputs("\n", to->out);
}

static void print_line(const struct printer *to, const char *before, const char *text) {
    if (!text)
        return;
    fprintf(to->out, REPORT_INDENT "%s", before);
    term_plain(to->out, text);
    fputs("\n", to->out);
}

/* Begins the line, or continues it after a comma. */
static void print_before(const struct printer *to, const char **before, const char *fact) {
    fprintf(to->out, "%s%s", *before, fact);
    *before = ", ";
}

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0, context 0x55...": the known facts. */
static void print_memory(const struct printer *to, const struct log_line *line) {
    const char *before = REPORT_INDENT;
    if (line->ptr) {
        print_before(to, &before, "at ");
        term_plain(to->out, line->ptr);
    }
    if (line->size != 0) {
        print_before(to, &before, printable_exact_size((uint64_t)line->size).text);
    }
    if (line->device >= 0) {
        print_before(to, &before, "GPU ");
        fprintf(to->out, "%" PRId64, line->device);
    }
    if (line->context) {
        print_before(to, &before, "context ");
        term_plain(to->out, line->context);
    }
    if (before[0] == ',')
        fputs("\n", to->out);
}

static void print_region(const struct printer *to, const struct log_line *line) {
    if (!line->name && !line->region)
        return;
    fputs(REPORT_INDENT "region ", to->out);
    if (line->name)
        term_plain(to->out, line->name);
    if (line->region) {
        fputs(line->name ? " (id " : "with id ", to->out);
        term_plain(to->out, line->region);
        fputs(line->name ? ")" : "", to->out);
    }
    fputs("\n", to->out);
}

/* ", by 3 processes: app (pid 7), ..." */
static void print_processes(const struct printer *to, const struct aggregate_group *group) {
    if (group->process_count < 2)
        return;
    fprintf(to->out, ", by %zu processes: ", group->process_count);
    for (size_t i = 0; i < group->process_count && i < NAMED_MAX; i++) {
        fputs(i > 0 ? ", " : "", to->out);
        print_process(to, &group->processes[i]);
    }
    if (group->process_count > NAMED_MAX)
        fprintf(to->out, " (and %zu more)", group->process_count - NAMED_MAX);
}

/* "17 times, from ... to ..., by 2 processes: ..." */
static void print_count(const struct printer *to, const struct aggregate_group *group) {
    if (group->count < 2)
        return;
    fprintf(to->out, REPORT_INDENT "%" PRIu64 " times, from %s to %s", group->count,
            group->first->ts, group->last);
    print_processes(to, group);
    fputs("\n", to->out);
}

static void print_others(const struct printer *to, const struct log_line *line) {
    for (size_t i = 0; i < line->others.count && i < NAMED_MAX; i++) {
        const struct log_event *other = &line->others.events[i];
        fputs(REPORT_INDENT "other process: ", to->out);
        print_process(to, &other->process);
        if (other->ts) {
            fputs(", since ", to->out);
            term_plain(to->out, other->ts);
        }
        fputs("\n", to->out);
    }
    if (line->others.count > NAMED_MAX)
        fprintf(to->out, REPORT_INDENT "(and %zu more)\n", line->others.count - NAMED_MAX);
}

/* --- earlier events --- */

static void print_stack(const struct printer *to, const struct log_stack *stack) {
    report_stack(to->out, REPORT_INDENT "    ", stack, stack->count, to->report->symbols);
}

static bool is_same(const struct log_process *a, const struct log_process *b) {
    return a->pid == b->pid && a->pid_ns == b->pid_ns;
}

/* "Allocated at:", or "Freed by producer (pid 7), 2026-11-21T12:00:00.000000Z, at:" where that was
 * another process. */
static void print_prior(const struct printer *to, const struct log_line *line,
                        const struct log_event *prior) {
    const char *what = prior->what && prior->what[0] != 0 ? prior->what : "before";
    const bool others = !is_same(&line->process, &prior->process);
    fprintf(to->out, REPORT_INDENT "%c", toupper((unsigned char)what[0]));
    term_plain(to->out, what + 1);
    if (others) {
        fputs(" by ", to->out);
        print_process(to, &prior->process);
    }
    if (prior->ts) {
        fputs(others ? ", " : " ", to->out);
        term_plain(to->out, prior->ts);
    }
    if (prior->stack.count > 0)
        fputs(prior->ts ? ", at:" : " at:", to->out);
    fputs("\n", to->out);
    print_stack(to, &prior->stack);
}

static void print_group(const struct printer *to, const struct aggregate_group *group) {
    const struct log_line *line = group->first;
    print_heading(to, line);
    print_line(to, "", line->message);
    print_memory(to, line);
    print_region(to, line);
    print_line(to, "", line->detail);
    print_count(to, group);
    print_others(to, line);
    if (line->stack.count > 0)
        fputs(REPORT_INDENT "Host frames:\n", to->out);
    print_stack(to, &line->stack);
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
static void print_summary(FILE *out, const struct aggregate_sums *sums) {
    uint64_t findings = 0;
    for (int level = GPS_LEVEL_INFO; level <= GPS_LEVEL_ERROR; level++)
        findings += sums->findings[level];
    print_number(out, REPORT_MARGIN "GPUSHARE SUMMARY: ", findings, "finding");
    const char *before = " (";
    for (int level = GPS_LEVEL_ERROR; level >= GPS_LEVEL_INFO; level--) {
        const uint64_t count = sums->findings[level];
        if (count > 0 && level > GPS_LEVEL_INFO)
            print_number(out, before, count, gps_level_name((enum gps_level)level));
        else if (count > 0)
            fprintf(out, "%s%" PRIu64 " info", before, count);
        before = count > 0 ? ", " : before;
    }
    if (findings > 0) {
        print_number(out, "), ", sums->occurrences, "occurrence");
        fprintf(out, ", %" PRIu64 " process%s", sums->processes, sums->processes == 1 ? "" : "es");
    }
    if (sums->suppressed > 0)
        fprintf(out, ", %" PRIu64 " suppressed", sums->suppressed);
    fputs("\n", out);
}

void report_text(FILE *out, const struct report *report) {
    const struct printer printer = {out, report};
    const struct aggregate_sums sums = aggregate_sums(&report->aggregate);
    report_contents(out, report);
    for (size_t i = 0; i < report->aggregate.count; i++)
        if (!report->aggregate.groups[i]->suppressed)
            print_group(&printer, report->aggregate.groups[i]);
    print_summary(out, &sums);
}
