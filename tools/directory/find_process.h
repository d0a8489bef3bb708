/*
 * find_process.h - the processes of a view that an operand means.
 *
 * find_process marks those as found, and no others, and returns how many there are: dead ones only
 * where no live one matches.
 */
#pragma once

#include "gpushare/region.h"
#include "view.h"

/* Of a function each: "4242" or "4242@4026531836"; the pid that it has here, where its own counts
 * in another namespace; the name of its program. */
typedef bool process_match_fn(const struct gps_owner *owner, const char *text);
process_match_fn process_has_pid, process_has_pid_here, process_has_program;
process_match_fn process_has_any_pid; /* of the first two */
size_t find_process(struct view *view, const char *text, process_match_fn *matches);

/* 0: it has ended, is of this namespace or of none that is known, or /proc shows none of it. */
uint32_t host_pid(const struct gps_owner *owner);

/* The pid by which this process, and so the driver, knows a live one. 0: that cannot be found out,
 * as where /proc shows none of it. Never the pid of another one, which the same number may be here.
 */
uint32_t pid_here(const struct gps_owner *owner);
