/*
 * fuzz_report.c - any bytes as a log: libFuzzer's entry.
 *
 * What is read must make a story whose parts fit together; every line that is not in it must have
 * been complained of, or be blank or of no finding.
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

static void check_group(const struct story_group *group) {
    need(group->count >= 1 && group->process_count >= 1);
    need(group->first->finding != NULL && group->first->level <= GPS_LEVEL_ERROR);
    need(strcmp(group->first->ts, group->last) <= 0);
    need(group->processes[0].pid == group->first->process.pid);
}

static void check_story(const struct logs *logs) {
    struct story story;

    story_make(&story, logs, GPS_LEVEL_INFO);
    need(story.count <= logs->count);
    for (size_t i = 0; i < story.count; i++) {
        check_group(story.groups[i]);
        need(i == 0 || strcmp(story.groups[i - 1]->first->ts, story.groups[i]->first->ts) <= 0);
    }
    need(story_sums(&story).processes <= logs->count);
    story_free(&story);
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
    check_story(&logs);
    logs_free(&logs);
    return 0;
}
