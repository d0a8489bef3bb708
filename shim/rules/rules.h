/*
 * rules.h - rules: an allocation of the program's becomes a named region, or another process's.
 *
 * The module owns the rules that apply to this process and their counts of matches. Whatever goes
 * wrong, the program gets ordinary memory, and a report says why; only `missing = fail` fails.
 */
#pragma once

#include "config/config.h"
#include "process/program.h"

void gps_rules_start(const struct gps_config *config, const struct gps_program *program);

/* Whether any rule could ever match here: without one an allocation costs one load of this. */
extern bool gps_rules_active;

/* Whether a rule may fit `height` rows of at least `width` bytes, whatever the pitch. */
bool gps_rules_may_fit(uint64_t width, uint64_t height);

/* Allocates `size` bytes (`pool`: in a stream's order) in the current context by the first rule
 * that matches. True: *code is the answer and, if it is 0, *pointer the memory, recorded in the
 * registry. False: no rule matches, or it is to be private: allocate as without rules. */
bool gps_rules_allocate(uint64_t size, bool pool, uint64_t *pointer, int *code);

/* Whether a rule takes VMM memory that the program has made: then *request is filled. `merges`: the
 * process merges such memory; else it is only counted (rule_counts.h). Inside a gps_scope. */
struct gps_merge_request;
bool gps_rules_take_created(uint64_t size, int device, bool merges,
                            struct gps_merge_request *request, uint8_t uuid[GPS_UUID_BYTES]);

/* Reports at level info the rules that matched nothing, when the process ends. */
void gps_rules_end(void);
