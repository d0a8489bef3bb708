/*
 * timeline_page.c - writes a history as one page: page.html with the history in it as JSON.
 *
 * Times are microseconds from the beginning on; -1 is a time that is not known. Rows are arrays, so
 * that a hundred thousand of them are a few megabytes; page.html has the meaning of their columns.
 */

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "log/log.h"
#include "report/report.h"
#include "timeline.h"

__asm__(".pushsection .rodata\n"
        "timeline_template: .incbin \"tools/timeline/page.html\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char timeline_template[];
static const char place[] = "@HISTORY@";

static json_int_t timeline_since(const struct history *history, int64_t time) {
    return time == HISTORY_OPEN ? -1 : time - history->begin;
}

static json_int_t timeline_place(size_t index) {
    return index == HISTORY_NONE ? -1 : (json_int_t)index;
}

/* --- rows --- */

typedef json_t *row_fn(const struct history *history, size_t i);

static json_t *rows(const struct history *history, size_t count, row_fn *row) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < count; i++)
        json_tree_append(array, row(history, i));
    return array;
}

static json_t *timeline_process_row(const struct history *history, size_t i) {
    const struct history_process *process = &history->processes[i];
    return json_tree_pack("[s, I, I, I, I, b, s, I]", process->facts.command, process->facts.pid,
                          process->facts.pid_ns, timeline_since(history, process->first),
                          timeline_since(history, process->last), process->ended,
                          tool_or(process->facts.arguments, ""), process->most);
}

static json_t *timeline_region_row(const struct history *history, size_t i) {
    return json_tree_pack("[s?, s?]", history->regions[i].name, history->regions[i].id);
}

static json_t *lifetime_row(const struct history *history, size_t i) {
    const struct history_lifetime *lifetime = &history->lifetimes[i];
    return json_tree_pack(
        "[I, I, I, I, I, I, I, s?]", timeline_place(lifetime->region),
        timeline_place(lifetime->owner), lifetime->size, timeline_since(history, lifetime->created),
        timeline_since(history, lifetime->exported), timeline_since(history, lifetime->freed),
        timeline_since(history, lifetime->gone), lifetime->how);
}

static json_t *hold_row(const struct history *history, size_t i) {
    const struct history_hold *hold = &history->holds[i];
    return json_tree_pack("[I, I, I, I]", timeline_place(hold->lifetime),
                          timeline_place(hold->process), timeline_since(history, hold->from),
                          timeline_since(history, hold->to));
}

static json_t *wait_row(const struct history *history, size_t i) {
    const struct history_wait *wait = &history->waits[i];
    return json_tree_pack("[I, I, I, I, i]", timeline_place(wait->process),
                          timeline_place(wait->region), timeline_since(history, wait->from),
                          timeline_since(history, wait->to), (int)wait->kind);
}

static json_t *merge_row(const struct history *history, size_t i) {
    const struct history_merge *merge = &history->merges[i];
    return json_tree_pack("[I, I, I, I]", timeline_place(merge->process),
                          timeline_since(history, merge->from), timeline_since(history, merge->to),
                          merge->size);
}

static json_t *frames_row(const struct history *history, size_t i) {
    const struct history_frames *frames = &history->frames[i];
    return json_tree_pack("[I, I, I, I, I, I, b]", timeline_place(frames->process),
                          timeline_place(frames->region), timeline_since(history, frames->from),
                          timeline_since(history, frames->to), frames->count, frames->left_out,
                          frames->writes);
}

static json_t *step_row(const struct history *history, size_t i) {
    const struct history_step *step = &history->steps[i];
    return json_tree_pack("[I, I, I]", timeline_since(history, step->time), step->used,
                          step->without);
}

/* --- findings --- */

static json_t *mark_row(const struct history *history, size_t i) {
    const struct history_mark *mark = &history->marks[i];
    return json_tree_pack("[I, I, I, s, s, s?, s?, I]", timeline_place(mark->process),
                          timeline_place(mark->region), timeline_since(history, mark->time),
                          mark->finding, gps_level_name(mark->level), mark->api, mark->detail,
                          mark->group ? (json_int_t)mark->group->number : -1);
}

static json_t *reports(const struct history *history, const char *debug_directory) {
    const struct report report = {.aggregate = history->aggregate,
                                  .symbols = symbol_open(debug_directory)};
    json_t *texts = json_tree_pack("[]");
    for (size_t i = 0; i < report.aggregate.count; i++) {
        TOOL_TEMP char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        if (!out)
            tool_no_memory();
        report_text_group(out, &report, report.aggregate.groups[i]);
        fclose(out);
        json_tree_append(texts, json_tree_string(text));
    }
    symbol_close(report.symbols);
    return texts;
}

static bool occurs(const struct history *history, const char *finding) {
    for (size_t i = 0; i < history->mark_count; i++)
        if (strcmp(history->marks[i].finding, finding) == 0)
            return true;
    return false;
}

/* The sentence and the hint of each finding, for those whose reports no log has. */
static json_t *catalogue(const struct history *history) {
    json_t *findings = json_tree_pack("{}");
    for (int i = 0; i < GPS_FINDING_COUNT; i++) {
        const enum gps_finding finding = (enum gps_finding)i;
        if (occurs(history, gps_finding_id(finding)))
            json_tree_add(findings, "{s:[s, s]}", gps_finding_id(finding),
                          gps_finding_sentence(finding), gps_finding_hint(finding));
    }
    return findings;
}

/* --- the page --- */

/* A "</script>" in a string would end the data. */
static int timeline_put(const char *bytes, size_t count, void *out) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(bytes[i], out);
    return 0;
}

void timeline_page(FILE *out, const struct history *history, const char *debug_directory) {
    const char *at = strstr(timeline_template, place);
    json_auto_t *tree = json_tree_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "begin",
        history->begin, "end", history->end - history->begin, "events", history->event_count,
        "processes", rows(history, history->process_count, timeline_process_row), "regions",
        rows(history, history->region_count, timeline_region_row), "lifetimes",
        rows(history, history->lifetime_count, lifetime_row), "holds",
        rows(history, history->hold_count, hold_row), "waits",
        rows(history, history->wait_count, wait_row), "merges",
        rows(history, history->merge_count, merge_row), "frames",
        rows(history, history->frames_count, frames_row), "steps",
        rows(history, history->step_count, step_row), "marks",
        rows(history, history->mark_count, mark_row), "reports", reports(history, debug_directory),
        "findings", catalogue(history));
    fwrite(timeline_template, 1, (size_t)(at - timeline_template), out);
    json_dump_callback(tree, timeline_put, out, JSON_COMPACT);
    fputs(at + strlen(place), out);
}
