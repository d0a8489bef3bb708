/*
 * lessons_print.c - what was learned, as a table for people and as rules.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "lessons.h"
#include "util/text.h"

static const char *const why[LESSON_VERDICTS] = {
    [LESSON_FINE] = "stays as it was uploaded",
    [LESSON_POOL] = "left out: memory of a pool (cudaMallocAsync) is not looked at",
    [LESSON_BRIEF] = "left out: soon freed, as a buffer for copies is",
    [LESSON_NOT_COPIED] = "left out: not filled by copies from the host (see --content any)",
    [LESSON_CHANGED] = "left out: kernels change it",
    [LESSON_REWRITTEN] = "left out: written again and again",
    [LESSON_YOUNG] = "left out: not unchanged for 2 s; let it run longer",
    [LESSON_DIFFERENT] = "left out: differs between the replicas",
    [LESSON_UNORDERED] = "left out: no rule tells it from memory of its size that changes",
};

/* --- the table: a row for all of one program, size and verdict --- */

struct row {
    uint64_t count, saves, from, processes;
};

static struct row sum_row(struct lesson *const *list, size_t count, enum lesson_verdict verdict) {
    struct row row = {0};
    for (size_t i = 0; i < count; i++) {
        row.processes += i == 0 || strcmp(list[i]->process, list[i - 1]->process) != 0;
        if (list[i]->verdict != verdict)
            continue;
        row.count++;
        row.saves += verdict == LESSON_FINE ? list[i]->saves : 0;
        row.from = list[i]->from > row.from ? list[i]->from : row.from;
    }
    return row;
}

static void add_row(struct table *table, const struct lesson *one, const struct row *row,
                    enum lesson_verdict verdict) {
    const bool fine = verdict == LESSON_FINE;
    table_cell(table, TERM_PLAIN, "%s", one->program);
    table_cell(table, TERM_PLAIN, "%s", printable_size(one->size).text);
    table_cell(table, TERM_PLAIN, "%" PRIu64, (row->count + row->processes - 1) / row->processes);
    table_cell(table, TERM_PLAIN, fine ? "%.1f s" : "-", (double)row->from / 1000);
    table_cell(table, TERM_PLAIN, "%s",
               fine ? printable_size(row->saves / row->processes).text : "-");
    table_cell(table, fine ? TERM_GREEN : TERM_PLAIN, "%s", why[verdict]);
}

void lessons_table(FILE *out, const struct lessons *lessons) {
    static const struct table_column columns[] = {{"PROGRAM", 0},      {"SIZE", 1},
                                                  {"COUNT", 1},        {"UNCHANGED FROM", 1},
                                                  {"SECOND SAVES", 1}, {"", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0, count; i < lessons->count; i += count) {
        count = lessons_alike(lessons, i);
        for (unsigned verdict = 0; verdict < LESSON_VERDICTS; verdict++) {
            const struct row row = sum_row(&lessons->list[i], count, verdict);
            if (row.count)
                add_row(&table, lessons->list[i], &row, verdict);
        }
    }
    table_print(out, &table, "");
}

/* --- the rules --- */

/* Characters that mean something else in a name become _, in a glob ?. */
static void put_plain(FILE *out, const char *name, char other, size_t most) {
    for (size_t i = 0; i < most && name[i]; i++)
        putc(gps_is_name_char(name[i]) && (i > 0 || name[i] != '.') ? name[i] : other, out);
}

static void put_rule(FILE *out, const struct lesson_rule *rule, size_t number) {
    fprintf(out,
            "\n# %" PRIu64 " in a process, unchanged from %.1f s on; a second process saves %s\n",
            rule->count, (double)rule->from / 1000, printable_size(rule->saves).text);
    fputs("[region ", out);
    put_plain(out, rule->program, '_', 30);
    fprintf(out, "-%zu]\nprogram = ", number);
    put_plain(out, rule->program, '?', SIZE_MAX);
    fprintf(out, "\nsize = %s\n", printable_size_value(rule->size).text);
    if (rule->last != UINT64_MAX)
        fprintf(out, "index = %s\n", printable_indices_value(rule->first, rule->last).text);
    if (rule->caller) {
        fputs("caller = ", out);
        put_plain(out, rule->caller, '?', SIZE_MAX);
        putc('\n', out);
    }
    fprintf(out, "role = merge\n%s\n", rule->any ? "content = any" : "quiet = 0");
}

void lessons_rules(FILE *out, const struct lessons *lessons) {
    fputs("# by gpushare learn\n", out);
    for (size_t i = 0; i < lessons->rule_count; i++)
        put_rule(out, &lessons->rules[i], i + 1);
}
