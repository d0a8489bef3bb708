/*
 * allocation_groups_json.c - a groups for scripts.
 */
#include <stdlib.h>

#include "allocation_groups.h"
#include "cli/json_tree.h"
#include "cli/tool.h"
#include "report/report.h"

static json_t *rule_tree(const struct allocation_groups *groups,
                         const struct allocation_group *group) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        tool_no_memory();
    allocation_group_rule(file, groups, group);
    fclose(file);
    json_t *rule = json_tree_string(text);
    free(text);
    return rule;
}

static json_t *group_tree(const struct allocation_groups *groups,
                          const struct allocation_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = json_tree_object();
    json_tree_set_number(object, "number", (int64_t)group->number);
    json_tree_set_number(object, "count", (int64_t)group->count);
    json_tree_set_number(object, "size", line->size);
    json_tree_set_string(object, "api", line->api);
    json_tree_set_number(object, "device", line->device);
    json_tree_set_string(object, "command", line->process.command);
    json_tree_set_number(object, "pid", line->process.pid);
    json_tree_set_number(object, "processes", (int64_t)group->process_count);
    json_tree_set_string(object, "kind", line->allocation.kind);
    json_tree_set_string(object, "caller", line->allocation.caller);
    json_tree_set_number(object, "index", (int64_t)group->index);
    json_tree_set_number(object, "last_index", (int64_t)group->last);
    json_tree_set(object, "rule", group->ruled ? rule_tree(groups, group) : json_null());
    json_tree_set(object, "stack", report_stack_tree(group->stack, symbols));
    return object;
}

void allocation_groups_json(FILE *out, const struct allocation_groups *groups,
                            struct symbols *symbols) {
    const struct allocation_group **order = allocation_groups_order(groups);
    json_t *array = json_tree_array();
    for (size_t i = 0; i < groups->count; i++)
        json_tree_append(array, group_tree(groups, order[i], symbols));
    json_tree_print(out, array);
    free(order);
}
