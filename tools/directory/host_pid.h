/*
 * host_pid.h - the pid that a process of another pid namespace has here.
 */
#pragma once

#include "gpushare/region.h"

/* 0: it has ended, is of this namespace or of none that is known, or /proc shows none of it. */
uint32_t host_pid(const struct gps_owner *owner);
