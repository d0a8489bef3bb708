/* hip_operations.h - the driver operations of driver/driver_ops.h for HIP. */
#pragma once

#include <stdbool.h>

/* gps_entry_slowly for HIP: finds the runtime, and makes these operations gps_ops. */
bool gps_hip_enter(void);
