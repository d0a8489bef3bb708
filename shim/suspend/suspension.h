/*
 * suspension.h - `gpushare suspend` and `resume`, as the process that is suspended does them.
 *
 * With `suspend = on` a thread of ours follows the orders of the directory (directory/orders.h). To
 * suspend, it holds all hooked calls at their entry (calls/entry.h), waits for the end of those
 * under way and until the device is idle, stops our other threads, and evicts own and shared memory
 * (own_memory.h, shared_memory.h). A failure is undone, and the answer says why. While the process
 * is suspended the driver may be locked, so the thread does not call it before it is to take memory
 * again. If the tool dies before it says that the process is to stay suspended, memory is taken
 * again. Memory that is gone for good ends the process with a report: its addresses would be holes.
 *
 * A process that ends suspended leaves its files to the next one: it cannot call the driver.
 */
#pragma once

#include "config/config.h"

/* Inside a gps_scope, as the process begins. */
void gps_suspension_start(const struct gps_options *options);
void gps_suspension_stop(void);
void gps_suspension_reset(void); /* in a forked child */
