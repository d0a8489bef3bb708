/*
 * explained.h - what the processes of a run allocated (gpushare/explained.h), against its rules.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "gpushare/explained.h"

struct explained {
    const struct gps_config *config;
    struct gps_explained **processes; /* by pid */
    size_t count;
};

/* Reads the file of a process; one that is not whole is left out. */
void explained_read(struct explained *explained, const char *path);
void explained_free(struct explained *explained);

/* A line for each allocation of each process (equal ones once), and what became of it: the rule
 * that took it, or for each rule the first reason against it. */
void explained_print_allocations(FILE *out, const struct explained *explained);
/* Whether one of them was left private that a rule took. */
bool explained_any_private(const struct explained *explained);
/* The rules that never matched, each with the nearest miss. */
void explained_print_misses(FILE *out, const struct explained *explained);
