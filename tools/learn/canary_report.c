#include "canary_report.h"

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"

enum { MS = 1000000 };

struct answer {
    json_int_t line, quiet, writes, written, was_quiet;
    const char *kernel;
};

/* False: no rule takes it. */
static bool read_answer(const struct profile *profile, struct answer *answer) {
    return json_unpack(profile->json, "{s:[I,I,I,I,I,s]}", "rule", &answer->line, &answer->quiet,
                       &answer->writes, &answer->written, &answer->was_quiet, &answer->kernel) == 0;
}

struct canary_sums canary_sum(const struct profiles *profiles) {
    struct canary_sums sums = {0};
    struct answer answer;
    for (size_t i = 0; i < profiles->count; i++)
        if (read_answer(profiles->list[i], &answer)) {
            sums.taken++;
            sums.quiet += answer.quiet != 0;
            sums.written += answer.writes != 0;
        }
    return sums;
}

/* "written 2.5 s after the start, ..."; malloc'ed. */
static char *written_text(const struct answer *answer) {
    TOOL_TEMP char *quiet =
        answer->was_quiet ? tool_format(", quiet for %s before",
                                        printable_duration((uint64_t)answer->was_quiet * MS).text)
                          : tool_copy(", before it was seen quiet");
    return tool_format(
        "WRITTEN by no copy or fill, at %.1f s%s%s%s%s", (double)answer->written / 1000, quiet,
        answer->writes > 1 ? ", and again later" : "",
        answer->kernel[0] ? "; the last kernel that got a pointer to it: " : "", answer->kernel);
}

static void canary_add_row(struct table *table, const struct profile *one,
                           const struct answer *answer, const char *path, size_t count) {
    TOOL_TEMP char *written = answer->writes ? written_text(answer) : NULL;
    table_cell(table, TERM_PLAIN, "%s:%" PRId64, path, (int64_t)answer->line);
    table_cell(table, TERM_PLAIN, "%s", one->program);
    table_cell(table, TERM_PLAIN, "%s", printable_size(one->size).text);
    table_cell(table, TERM_PLAIN, "%zu", count);
    table_cell(table,
               written         ? TERM_RED
               : answer->quiet ? TERM_GREEN
                               : TERM_PLAIN,
               "%s",
               written         ? written
               : answer->quiet ? "not written once it was quiet"
                               : "would not have been merged: it was never filled, or never quiet "
                                 "for so long");
}

/* Allocations that were not written, and are alike, have one row: how many follow each other. */
static size_t count_rows(const struct profiles *profiles, size_t first, const struct answer *is) {
    const struct profile *one = profiles->list[first];
    size_t end = first + 1;
    struct answer next;
    while (!is->writes && end < profiles->count && read_answer(profiles->list[end], &next) &&
           !next.writes && next.line == is->line && next.quiet == is->quiet &&
           profiles->list[end]->size == one->size &&
           strcmp(profiles->list[end]->program, one->program) == 0)
        end++;
    return end - first;
}

void canary_report(FILE *out, const struct profiles *profiles, const char *path) {
    static const struct table_column columns[] = {
        {"RULE", 0}, {"PROGRAM", 0}, {"SIZE", 1}, {"COUNT", 1}, {"", 0}};
    struct table table = TABLE(columns);
    struct answer answer;
    for (size_t i = 0, count; i < profiles->count; i += count) {
        count = 1;
        if (!read_answer(profiles->list[i], &answer))
            continue;
        count = count_rows(profiles, i, &answer);
        canary_add_row(&table, profiles->list[i], &answer, path, count);
    }
    table_print(out, &table, "");
}
