/*
 * allocation_groups_json.c - the groups as JSON.
 */
#include <stdlib.h>

#include "allocation_groups.h"
#include "cli/json_tree.h"
#include "cli/tool.h"
#include "report/report_format.h"

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
        "{s:I, s:I, s:I, s:o, s:I, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o}", "number",
        group->number, "count", group->count, "size", line->size, "api",
        json_tree_string(line->api), "device", line->device, "command",
        json_tree_string(line->process.command), "pid", line->process.pid, "processes",
        group->process_count, "kind", json_tree_string(allocation->kind), "caller",
        json_tree_string(allocation->caller), "index", group->index, "last_index", group->last,
        "rule", group->ruled ? rule_json(groups, group) : json_null(), "stack",
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
