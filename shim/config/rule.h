/*
 * rule.h - the checks of a region rule; config.h declares the matching.
 *
 * Pure functions. A check returns NULL or a phrase that says what is wrong.
 */
#pragma once

#include "config.h"

/* Checks the name of a section header: 1 to 127 characters, as for a region, that form a valid name
 * when {n} and {device} are replaced by numbers. gps_rule_name checks the length. */
const char *gps_rule_check_name(const char *name);

/* Checks a glob on a file name: 1 to 127 characters, no '/', every [ closed. */
const char *gps_glob_check(const char *pattern);

/* Checks the keys against each other: a rule for several allocations needs {n} in its name; ready =
 * free, time for the hand-over. The phrase begins with the key that is wrong. */
const char *gps_rule_check(const struct gps_rule *rule);

/* Why a key has no effect in this rule; NULL: it has. With role = merge such a key is an error. */
const char *gps_rule_unused(const struct gps_rule *rule, const char *key);

/* Whether two rules have the same name, role and program, which is an error. Rules that differ in
 * role or program may share a name. */
bool gps_rule_repeats(const struct gps_rule *a, const struct gps_rule *b);
