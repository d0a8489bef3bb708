/*
 * allocation_groups_print.c - the groups as text, and as JSON.
 *
 * The text is a configuration: everything but the rules is comment, so it can be checked and used
 * as it is.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "allocation_groups.h"
#include "cli/json_tree.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "report/report.h"
#include "symbols/user_frame.h"

#define FRAMES_MAX 5

/* --- the table --- */

static void put_row(struct table *table, const struct allocation_group *group) {
    const struct log_line *line = group->first;
    table_cell(table, TERM_PLAIN, "%zu", group->number);
    table_cell(table, TERM_PLAIN, "%" PRIu64, group->count);
    table_cell(table, TERM_PLAIN, "%s", printable_size_value((uint64_t)line->size).text);
    table_cell(table, TERM_PLAIN, "%s", tool_or(line->api, "-"));
    table_cell(table, TERM_PLAIN, "%" PRId64, line->device);
    if (group->process_count == 1)
        table_cell(table, TERM_PLAIN, "%s %" PRId64, line->process.command, line->process.pid);
    else
        table_cell(table, TERM_PLAIN, "%s, %zu processes", line->process.command,
                   group->process_count);
    table_cell(table, TERM_PLAIN, "%s", tool_or(line->allocation.caller, "-"));
    table_cell(table, TERM_PLAIN, "%s",
               group->ruled ? printable_indices_value(group->index, group->last).text : "-");
}

static void put_table(FILE *out, const struct allocation_groups *groups) {
    static const struct table_column columns[] = {{"NO", 1},     {"COUNT", 1}, {"SIZE", 1},
                                                  {"CALL", 0},   {"GPU", 1},   {"PROGRAM", 0},
                                                  {"CALLER", 0}, {"INDEX", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < groups->count; i++)
        put_row(&table, &groups->list[i]);
    table_print(out, &table, "# ");
}

/* --- the rules --- */

static void put_rule(FILE *out, const struct allocation_groups *groups,
                     const struct allocation_group *group, struct symbols *symbols) {
    const struct symbol_place *place = user_frame_place(group->stack, symbols);
    char *text = place ? report_place(place) : tool_copy("");
    fputs("\n", out);
    term_line(out, "# %zu: %" PRIu64 " of %s%s%s", group->number, group->count,
              printable_size_value((uint64_t)group->first->size).text,
              !place            ? ""
              : place->function ? ", by "
                                : " ",
              text);
    free(text);
    report_stack(out, "#     ", group->stack, FRAMES_MAX, symbols);
    if (group->ruled)
        allocation_group_rule(out, groups, group);
    else if (!group->first->allocation.caller)
        fputs("# No rule can take it: its caller is code in no module.\n", out);
    else
        fputs("# Memory of a pool: only a rule with backing = vmm takes it, and counts it with the "
              "others.\n",
              out);
}

void allocation_groups_text(FILE *out, const struct allocation_groups *groups,
                            struct symbols *symbols) {
    const struct allocation_group **order = allocation_groups_order(groups);
    fprintf(out,
            "# gpushare: %" PRIu64 " allocation%s of device memory, %s, by %" PRIu64 " process%s\n",
            groups->allocations, groups->allocations == 1 ? "" : "s",
            printable_size(groups->bytes).text, groups->processes,
            groups->processes == 1 ? "" : "es");
    if (groups->cut)
        fputs("# NOT ALL: a process reached log_max; to list more, set GPUSHARE_LOG_MAX\n", out);
    if (groups->count > 0) {
        fputs("#\n", out);
        put_table(out, groups);
        fputs("#\n# A rule for each line follows. Keep those of the memory that processes are to "
              "share, in\n"
              "# this order, delete the others, and see: gpushare check FILE\n",
              out);
    }
    for (size_t i = 0; i < groups->count; i++)
        put_rule(out, groups, order[i], symbols);
    free(order);
}

/* --- JSON --- */

static json_t *rule_json(const struct allocation_groups *groups,
                         const struct allocation_group *group) {
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        tool_no_memory();
    allocation_group_rule(file, groups, group);
    fclose(file);
    json_t *rule = json_tree_string(text);
    free(text);
    return rule;
}

static json_t *group_json(const struct allocation_groups *groups,
                          const struct allocation_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    const struct log_allocation *allocation = &line->allocation;
    return json_tree_pack(
        "{s:I, s:I, s:I, s:s?, s:I, s:s?, s:I, s:I, s:s?, s:s?, s:I, s:I, s:o?, s:o}", "number",
        group->number, "count", group->count, "size", line->size, "api", line->api, "device",
        line->device, "command", line->process.command, "pid", line->process.pid, "processes",
        group->process_count, "kind", allocation->kind, "caller", allocation->caller, "index",
        group->index, "last_index", group->last, "rule",
        group->ruled ? rule_json(groups, group) : NULL, "stack",
        report_stack_json(group->stack, symbols));
}

void allocation_groups_json(FILE *out, const struct allocation_groups *groups,
                            struct symbols *symbols) {
    const struct allocation_group **order = allocation_groups_order(groups);
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < groups->count; i++)
        json_tree_append(array, group_json(groups, order[i], symbols));
    json_tree_print(out, array);
    free(order);
}
