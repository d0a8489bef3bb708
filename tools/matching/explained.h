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

/* Prints a line for each allocation of each process (equal ones once), with the rule that took it,
 * or with the first reason of each rule that did not. */
void explained_print_allocations(FILE *out, const struct explained *explained);
/* Whether an allocation that a rule took was left private. */
bool explained_any_private(const struct explained *explained);
/* Prints the rules that never matched, each with the allocation that came nearest. */
void explained_print_misses(FILE *out, const struct explained *explained);
