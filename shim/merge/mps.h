/*
 * mps.h - a GPU that is shared by MPS, on which a fault of one process is every client's.
 *
 * A kernel that writes into merged memory faults. So rules without `mps = on` take nothing there.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"

/* Whether the rule may not take memory of this device. Any thread, inside a gps_scope. */
bool gps_mps_forbids(const struct gps_rule *rule, int device);
/* Whether it forbade something. */
bool gps_mps_has_forbidden(void);
