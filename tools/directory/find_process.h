/*
 * find_process.h - the processes of a view that an operand means.
 *
 * Each function marks those as found, and no others, and returns how many there are: dead ones only
 * where no live one matches.
 */
#pragma once

#include "view.h"

size_t find_process_by_pid(struct view *view, const char *text); /* "4242", "4242@4026531836" */
/* By the pid that it has here, where its own counts in another namespace. */
size_t find_process_by_pid_here(struct view *view, const char *text);
size_t find_process_by_program(struct view *view, const char *text);
