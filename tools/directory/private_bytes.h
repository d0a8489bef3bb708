/*
 * private_bytes.h - how much of what merge rules took of a process saves nothing, and why.
 *
 * The reasons are its own words (GPS_VIA_PRIVATE). What is apart is seen from all processes: blocks
 * that only this one has, beside others of its program that merge on the same GPU.
 */
#pragma once

#include <stdio.h>

#include "cli/json_tree.h"
#include "view.h"

struct private_bytes {
    uint64_t bytes[GPS_PRIVATE_COUNT]; /* by enum gps_private */
};

struct private_bytes private_bytes_of(const struct view *view, const struct gps_owner *owner);
/* [{"reason": "unfilled", "bytes": 4194304}], those that are not 0. */
json_t *private_bytes_json(const struct view *view, const struct gps_owner *owner);
