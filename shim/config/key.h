/*
 * key.h - the table of the keys of gpushare.conf, made from options.def.
 *
 * A key has a default, a check and a field in struct gps_options or gps_rule. Constant data and
 * pure functions, safe from any thread.
 */
#pragma once

#include "config.h"
#include "util/text.h"

enum gps_section { GPS_SECTION_OPTIONS, GPS_SECTION_REGION };

struct gps_key_type;

struct gps_key {
    const char *name;
    const char *fallback; /* the default; NULL: the key is required */
    const char *allowed;  /* for a choice, the list of its values */
    const char *sentence;
    size_t offset; /* of its field */
    const struct gps_key_type *type;
};

/* The keys of a section, and one without a name behind them. */
const struct gps_key *gps_keys_of(enum gps_section section);
/* NULL when the section has no such key. */
const struct gps_key *gps_key_find(enum gps_section section, const char *name);

/* The index of the key in its section, from 0. */
size_t gps_key_place(const struct gps_key *key);

/* The line of the rule's key with which `what` begins; the section's, where the file has none. */
unsigned gps_key_line(const struct gps_rule *rule, const char *what);

/* Sets the key's field of `target`, a struct gps_options or gps_rule. NULL, or a phrase that says
 * what is wrong with the text; the field is then unchanged. */
const char *gps_key_set(const struct gps_key *key, void *target, const char *text);
/* Zeroes the target and sets every default. */
void gps_keys_default(enum gps_section section, void *target, size_t size);

/* Whether key->allowed begins with words, up to an "or". */
bool gps_key_has_words(const struct gps_key *key);
/* What stands before key->allowed in a message: "one of " for a choice, or "". */
const char *gps_key_one_of(const struct gps_key *key);
/* Adds the message on an unknown key, with all keys of the section. */
void gps_key_unknown(enum gps_section section, const char *name, struct gps_text *text);
/* The environment variable that overrides an option: "GPUSHARE_LOG_FORMAT". */
void gps_key_variable(const struct gps_key *key, struct gps_text *text);
