/*
 * rule.h - what makes a rule valid; matching is in config.h.
 *
 * Pure functions. A check answers NULL, or a phrase that says what is wrong.
 */
#ifndef GPS_RULE_H
#define GPS_RULE_H

#include "config.h"

/* A name as it stands in a section header: 1 to 42 characters, a valid name once {n} and {device}
 * have become numbers. */
const char *gps_rule_check_name(const char *name);

/* A glob on a file name: 1 to 127 characters, no '/', every [ closed. */
const char *gps_glob_check(const char *pattern);

/* What cannot be meant, keys being valid one by one: a name for many allocations without {n}, a
 * hand-over that ends as it begins. */
const char *gps_rule_check(const struct gps_rule *rule);

/* Sections may bear one name when they differ in role or program, so that one file serves all sides
 * of a region. Otherwise the second is a slip. */
bool gps_rule_repeats(const struct gps_rule *a, const struct gps_rule *b);

#endif
