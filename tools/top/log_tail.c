#include "log_tail.h"

#include "cli/tool.h"
#include "config/config.h"

/* The programs report the errors of a configuration. */
void log_tail_begin(struct log_tail *tail, char *const *paths, size_t count) {
    struct gps_config config;
    *tail = (struct log_tail){.logs = {.paths = paths, .path_count = count}};
    if (count > 0 || gps_config_load(&config, NULL, NULL) != 0)
        return;
    if (config.options.log_format == GPS_LOG_JSONL && strcmp(config.options.log, "stderr") != 0)
        tail->logs.configured = follow_glob(config.options.log);
    gps_config_free(&config);
}

/* --- findings --- */

/* By id, and by level where reports of one finding have several. */
static int log_tail_by_id(const void *left, const void *right) {
    const struct log_tail_count *a = left, *b = right;
    return strcmp(a->id, b->id) ?: (int)a->level - (int)b->level;
}

static void count_finding(struct log_tail *tail, const struct log_line *line) {
    struct log_tail_count *counts = tail->counts;
    for (size_t i = 0; i < tail->count_count; i++)
        if (counts[i].level == line->level && strcmp(counts[i].id, line->finding) == 0) {
            counts[i].count += log_tail_times(line);
            return;
        }
    TOOL_APPEND(
        tail->counts, tail->count_count,
        (struct log_tail_count){tool_copy(line->finding), line->level, log_tail_times(line)});
}

/* Logs of several processes are read one after the other, so a finding may belong before others. */
static void log_tail_keep_finding(struct log_tail *tail, struct log_line *line) {
    size_t at = tail->finding_count;
    TOOL_APPEND(tail->findings, tail->finding_count, line);
    for (; at > 0 && strcmp(tail->findings[at - 1]->ts, line->ts) > 0; at--)
        tail->findings[at] = tail->findings[at - 1];
    tail->findings[at] = line;
    if (tail->finding_count <= LOG_TAIL_KEPT)
        return;
    log_line_free(tail->findings[0]);
    memmove(&tail->findings[0], &tail->findings[1],
            --tail->finding_count * sizeof(*tail->findings));
}

static void log_tail_add_line(void *arg, const char *text, size_t length) {
    struct log_tail *tail = arg;
    const char *wrong;
    struct log_line *line = log_line_parse(text, length, false, &wrong);
    if (line && line->finding) {
        count_finding(tail, line);
        log_tail_keep_finding(tail, line);
    } else if (line) {
        log_line_free(line);
    }
}

/* --- all of it --- */

bool log_tail_read(struct log_tail *tail) {
    const bool good = follow_read(&tail->logs, log_tail_add_line, tail);
    TOOL_SORT(tail->counts, tail->count_count, log_tail_by_id);
    return good;
}

void log_tail_end(struct log_tail *tail) {
    for (size_t i = 0; i < tail->finding_count; i++)
        log_line_free(tail->findings[i]);
    for (size_t i = 0; i < tail->count_count; i++)
        free(tail->counts[i].id);
    free(tail->findings);
    free(tail->counts);
    follow_end(&tail->logs);
}
