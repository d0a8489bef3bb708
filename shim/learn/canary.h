/*
 * canary.h - the merge rules that `gpushare learn --check` asks about: which of them would take an
 * allocation, and whether a kernel wrote what would have been merged by then.
 *
 * It works where GPUSHARE_LEARN_RULES is the path of a configuration, beside GPUSHARE_LEARN. The
 * rules take no memory; they are only matched, and counted as rules.h counts them.
 */
#pragma once

#include "profile.h"

/* Constant once the process has begun. */
extern bool gps_canary_active;
void gps_canary_start(void);

/* The merge rule that would take an allocation of the current context; NULL: none. Inside a
 * gps_scope. Each allocation has to be asked for, also one that is too small to be merged. */
const struct gps_rule *gps_canary_rule(uint64_t size, enum gps_profile_kind kind);

/* A block was looked at: `changed` by no call since the look before. Wants the lock of area.h. */
void gps_canary_note(const struct gps_area *area, const struct gps_block *block, uint64_t before,
                     uint64_t now, bool changed);

/* A kernel is launched with this word as an argument. Any thread. */
void gps_canary_given(uint64_t word, const char *kernel);
