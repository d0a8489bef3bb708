/*
 * allocation_groups_json.c - a listing for scripts.
 */
#include <stdlib.h>

#include "allocation_groups.h"
#include "cli/json_tree.h"
#include "cli/tool.h"
#include "report/report.h"

static json_t *rule_tree(const struct listing *listing, const struct listing_group *group) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        tool_no_memory();
    listing_rule(file, listing, group);
    fclose(file);
    json_t *rule = tree_string(text);
    free(text);
    return rule;
}

static json_t *group_tree(const struct listing *listing, const struct listing_group *group,
                          struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = tree_object();
    tree_set_number(object, "number", (int64_t)group->number);
    tree_set_number(object, "count", (int64_t)group->count);
    tree_set_number(object, "size", line->size);
    tree_set_string(object, "api", line->api);
    tree_set_number(object, "device", line->device);
    tree_set_string(object, "command", line->process.command);
    tree_set_number(object, "pid", line->process.pid);
    tree_set_number(object, "processes", (int64_t)group->process_count);
    tree_set_string(object, "kind", line->allocation.kind);
    tree_set_string(object, "caller", line->allocation.caller);
    tree_set_number(object, "index", (int64_t)group->index);
    tree_set_number(object, "last_index", (int64_t)group->last);
    tree_set(object, "rule", group->ruled ? rule_tree(listing, group) : json_null());
    tree_set(object, "stack", report_stack_tree(group->stack, symbols));
    return object;
}

void listing_json(FILE *out, const struct listing *listing, struct symbols *symbols) {
    const struct listing_group **order = listing_order(listing);
    json_t *array = tree_array();
    for (size_t i = 0; i < listing->count; i++)
        tree_append(array, group_tree(listing, order[i], symbols));
    tree_print(out, array);
    free(order);
}
