/*
 * fuzz_report.c - any bytes as a log: libFuzzer's entry.
 *
 * A line is the same whether it is read as it stands or as a tree of JSON. What is read must make
 * an aggregate whose parts fit together; every line that is not in it must have been complained of,
 * or be blank or of no finding.
 */
#include "fuzz.h"

#include "cli/tool.h"
#include "logs/aggregate.h"

/* tool.c names it for the top's --help, which nobody asks for here. */
const struct tool_verb tool_verb_help = {.name = "help"};

static void on_complaint(const char *file, unsigned long line, const char *message) {
    need(strcmp(file, "fuzz") == 0 && line < 1ul << 20 && message[0] != '\0');
}

/* --- a line as it stands, and as a tree --- */

static bool same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void check_process(const struct log_process *a, const struct log_process *b) {
    need(a->pid == b->pid && a->pid_ns == b->pid_ns && a->rank == b->rank &&
         same(a->command, b->command));
}

static void check_stack(const struct log_stack *a, const struct log_stack *b) {
    need(a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        need(same(a->frames[i].module, b->frames[i].module) &&
             same(a->frames[i].build_id, b->frames[i].build_id) &&
             same(a->frames[i].function, b->frames[i].function) &&
             same(a->frames[i].file, b->frames[i].file) && a->frames[i].line == b->frames[i].line &&
             a->frames[i].offset == b->frames[i].offset);
}

static void check_events(const struct log_events *a, const struct log_events *b) {
    need(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        check_process(&a->events[i].process, &b->events[i].process);
        check_stack(&a->events[i].stack, &b->events[i].stack);
        need(same(a->events[i].what, b->events[i].what) && same(a->events[i].ts, b->events[i].ts));
    }
}

static void check_line(const struct log_line *a, const struct log_line *b) {
    check_process(&a->process, &b->process);
    check_stack(&a->stack, &b->stack);
    check_events(&a->prior, &b->prior);
    check_events(&a->others, &b->others);
    need(same(a->ts, b->ts) && same(a->finding, b->finding) && same(a->api, b->api) &&
         same(a->ptr, b->ptr) && same(a->context, b->context) && same(a->region, b->region) &&
         same(a->name, b->name) && same(a->message, b->message) && same(a->hint, b->hint) &&
         same(a->site, b->site) && same(a->detail, b->detail));
    need(a->level == b->level && a->size == b->size && a->device == b->device &&
         a->count == b->count);
}

/* --- all lines --- */

struct reading {
    struct aggregate aggregate;
    size_t lines;
};

static const char *on_line(void *arg, const char *text, size_t length) {
    struct reading *reading = arg;
    const char *wrong, *wrong_tree;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    struct log_line *tree = log_line_parse(text, length, true, &wrong_tree);
    need(same(wrong, wrong_tree) && !line == !tree && !line != !wrong);
    if (line) {
        check_line(line, tree);
        log_line_free(line);
        log_line_free(tree);
        reading->lines++;
    }
    const char *wrong_again = aggregate_add(&reading->aggregate, text, length);
    need(same(wrong, wrong_again));
    return wrong;
}

static void check_group(const struct aggregate_group *group) {
    need(group->count >= 1 && group->process_count >= 1);
    need(group->first->finding != NULL && group->first->level <= GPS_LEVEL_ERROR);
    need(strcmp(group->first->ts, group->last) <= 0);
    need(group->processes[0]->facts.pid == group->first->process.pid);
}

static void check_aggregate(const struct aggregate *aggregate, size_t lines) {
    need(aggregate->count <= lines);
    for (size_t i = 0; i < aggregate->count; i++) {
        check_group(aggregate->groups[i]);
        need(i == 0 ||
             strcmp(aggregate->groups[i - 1]->first->ts, aggregate->groups[i]->first->ts) <= 0);
    }
    need(aggregate_sums(aggregate).processes <= lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct reading reading = {.lines = 0};
    const struct log_sink sink = {on_line, &reading, on_complaint};
    FILE *file;
    if (size == 0)
        return 0;
    file = fmemopen((void *)(uintptr_t)data, size, "r");
    need(file != NULL);
    aggregate_begin(&reading.aggregate, GPS_LEVEL_INFO);
    logs_read(file, "fuzz", &sink);
    fclose(file);
    aggregate_end(&reading.aggregate);
    check_aggregate(&reading.aggregate, reading.lines);
    aggregate_free(&reading.aggregate);
    return 0;
}
