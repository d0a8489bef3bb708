/*
 * describe.h - everything about one region or one process, as text and as JSON.
 */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include "view.h"

void describe_region(const struct view *view, const struct view_region *region);
void describe_process(const struct view *view, const struct view_process *process);

/* One element of an array: what ls gives and more, "kind" first. */
void describe_region_json(const struct view *view, const struct view_region *region,
                          struct json *json);
void describe_process_json(const struct view *view, const struct view_process *process,
                           struct json *json);

#endif
