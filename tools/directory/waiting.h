/*
 * waiting.h - who waits for what, as ls and show print it.
 */
#pragma once

#include "cli/json_tree.h"
#include "view.h"

/* Prints an empty line and a table of all waits; nothing where nobody waits. */
void waiting_print(const struct view *view);
/* Appends objects with the members of a region, null where a wait has none, and with `for`,
 * `region` and `most`. */
void waiting_append(const struct view *view, json_t *array);

/* Calls fn with "camera 4242 for an exporter of frames, 5 s of at most 30 s" for each wait of the
 * process; `owner` NULL: for each process that waits for the region of this name. */
void waiting_each(const struct view *view, const struct gps_owner *owner, const char *region,
                  void (*fn)(const char *text));
