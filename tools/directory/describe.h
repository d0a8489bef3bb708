/*
 * describe.h - everything about one region or one process, as text and as JSON.
 */
#pragma once

#include "cli/json_tree.h"
#include "view.h"

void describe_region(const struct view *view, const struct view_region *region);
void describe_process(const struct view *view, const struct view_process *process);

/* Objects that begin with "kind". A region's has the members of ls next, and then more. */
json_t *describe_region_json(const struct view *view, const struct view_region *region);
json_t *describe_process_json(const struct view *view, const struct view_process *process);
