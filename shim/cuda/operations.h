/* operations.h - the driver operations of driver/driver_ops.h for CUDA. */
#pragma once

/* Makes them gps_ops. After gps_driver_attach; any number of times. */
void gps_operations_use(void);
