/*
 * fuzz_report.c - any bytes as a log: libFuzzer's entry.
 *
 * What is read must make an aggregate whose parts fit together; every line that is not in it must
 * have been complained of, or be blank or of no finding.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "logs/aggregate.h"

/* tool.c names it for the top's --help, which nobody asks for here. */
const struct tool_verb tool_verb_help = {.name = "help"};

static void need(bool holds) {
    if (!holds)
        abort();
}

static void on_complaint(const char *file, unsigned long line, const char *message) {
    need(strcmp(file, "fuzz") == 0 && line < 1ul << 20 && message[0] != '\0');
}

static void check_group(const struct aggregate_group *group) {
    need(group->count >= 1 && group->process_count >= 1);
    need(group->first->finding != NULL && group->first->level <= GPS_LEVEL_ERROR);
    need(strcmp(group->first->ts, group->last) <= 0);
    need(group->processes[0].pid == group->first->process.pid);
}

static void check_aggregate(const struct logs *logs) {
    struct aggregate aggregate;

    aggregate_make(&aggregate, logs, GPS_LEVEL_INFO);
    need(aggregate.count <= logs->count);
    for (size_t i = 0; i < aggregate.count; i++) {
        check_group(aggregate.groups[i]);
        need(i == 0 ||
             strcmp(aggregate.groups[i - 1]->first->ts, aggregate.groups[i]->first->ts) <= 0);
    }
    need(aggregate_sums(&aggregate).processes <= logs->count);
    aggregate_free(&aggregate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct logs logs = {NULL, 0};
    FILE *file;

    if (size == 0)
        return 0;
    file = fmemopen((void *)(uintptr_t)data, size, "r");
    need(file != NULL);
    logs_read(&logs, file, "fuzz", on_complaint);
    fclose(file);
    logs_sort(&logs);
    check_aggregate(&logs);
    logs_free(&logs);
    return 0;
}
