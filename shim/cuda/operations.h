/* operations.h - the driver operations of driver/driver_ops.h for CUDA. */
#pragma once

#include <stdbool.h>

/* gps_entry_slowly for CUDA: finds libcuda, and makes these operations gps_ops. */
bool gps_operations_enter(void);

/* Whether memory of cuMemCreate may be registered with other hardware there. Inside a scope or not.
 */
bool gps_operations_rdma(int device);
