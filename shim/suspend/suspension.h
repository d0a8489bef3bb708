/*
 * suspension.h - `gpushare suspend` and `resume`, as the process that is suspended does them.
 *
 * With `suspend = on` a thread of ours follows the orders of the directory
 * (directory/orders.h). To let go it holds all hooked calls at their entry (calls/entry.h),
 * waits until those under way have ended and the device is idle, stops our other threads, and lets
 * go of shared memory (shared_memory.h). What fails is undone, and the answer says why. While the
 * process is suspended the driver may be locked, so the thread does not call it before it is to
 * take memory again. If the tool dies before it says that the process is to stay so, memory is
 * taken again. Memory that is gone for good ends the process with a report: its addresses would be
 * holes.
 *
 * A process that ends while it is suspended leaves the directory to the next one, for the driver
 * cannot be asked.
 */
#pragma once

#include "config/config.h"

/* Inside a gps_scope, as the process begins. */
void gps_suspension_start(const struct gps_options *options);
void gps_suspension_stop(void);
void gps_suspension_reset(void); /* in a forked child */
