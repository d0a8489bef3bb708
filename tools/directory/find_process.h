/*
 * find_process.h - the processes of a view that an operand means.
 *
 * Each function marks those as found, and no others, and returns how many there are: dead ones only
 * where no live one matches.
 */
#pragma once

#include "gpushare/region.h"
#include "view.h"

size_t find_process_by_pid(struct view *view, const char *text); /* "4242", "4242@4026531836" */
/* By the pid that it has here, where its own counts in another namespace. */
size_t find_process_by_pid_here(struct view *view, const char *text);
size_t find_process_by_program(struct view *view, const char *text);

/* 0: it has ended, is of this namespace or of none that is known, or /proc shows none of it. */
uint32_t host_pid(const struct gps_owner *owner);
