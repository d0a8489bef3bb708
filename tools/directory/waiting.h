/*
 * waiting.h - who waits for what, as ls and show tell it.
 */
#pragma once

#include "cli/json_tree.h"
#include "view.h"

/* A table of all, behind an empty line; nothing where nobody waits. */
void waiting_print(const struct view *view);
/* Members as those of a region, with null for what a wait has not, and `for`, `region`, `most`. */
void waiting_append(const struct view *view, json_t *array);

/* Of one process, or of all that wait for the region of this name: calls fn with "camera 4242 for
 * an exporter of frames, 5 s of at most 30 s". */
void waiting_each(const struct view *view, const struct gps_owner *owner, const char *region,
                  void (*fn)(const char *text));
