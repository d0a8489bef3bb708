/*
 * rule_request.h - one allocation on its way through the rule that takes it.
 *
 * rules.c matches and begins it; rule_import.c and rule_export.c carry it out. Whatever goes wrong,
 * the program gets ordinary memory, and a report says why; only `missing = fail` fails the
 * allocation. Any thread may call the functions, inside a gps_scope that has entered a context.
 */
#pragma once

#include "config/config.h"
#include "gpushare/explained.h"

#define GPS_WHY_BYTES 160u

/* Why the memory is private. */
struct gps_rule_why {
    char text[GPS_WHY_BYTES];
    bool names_key; /* the key that the region does not fit, and the value that it needs */
};

struct gps_rule_request {
    const struct gps_rule *rule;
    uint64_t size;
    bool pool; /* in a stream's order */
    uint64_t context;
    int device; /* ordinal */
    uint8_t uuid[GPS_UUID_BYTES];
    char name[GPS_NAME_BYTES]; /* of the region */
    struct gps_rule_why *why;
    unsigned passed_count; /* of the rules that fit and leave out this number */
    struct gps_explained_pass passed[GPS_EXPLAINED_PASSED];
};

enum gps_outcome {
    GPS_PRIVATE, /* allocate as if there were no rule */
    GPS_DONE,    /* the pointer, or the code of a failed allocation, is the answer */
};

/* Claims the request's name. Returns 0 or -errno; with -EEXIST *holder (may be NULL) has it. */
int gps_rule_request_take(const struct gps_rule_request *request, struct gps_owner *holder);

void gps_rule_request_report(const struct gps_rule_request *request, enum gps_finding finding,
                             const char *detail, const struct gps_owner *other);
/* Reports why the allocation is private; `other` may be NULL. */
enum gps_outcome gps_rule_request_private(const struct gps_rule_request *request, const char *why,
                                          const struct gps_owner *other);

/* rule_export.c: these allocate and publish the region. The second one makes no report if another
 * process has the name: it returns false, and *outcome is not set. */
enum gps_outcome gps_rule_export(const struct gps_rule_request *request, uint64_t *pointer);
bool gps_rule_take_over(const struct gps_rule_request *request, uint64_t *pointer,
                        enum gps_outcome *outcome);

/* rule_import.c: maps the region in place of the allocation. `take_over` is set for role = auto:
 * the exporter may die before it publishes; the first to claim its name then is the exporter. */
enum gps_outcome gps_rule_import(const struct gps_rule_request *request, bool take_over,
                                 uint64_t *pointer, int *code);
