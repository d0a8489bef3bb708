/* operations.h - the driver operations of process/driver_ops.h for CUDA. */
#ifndef GPS_OPERATIONS_H
#define GPS_OPERATIONS_H

/* Makes them gps_ops. After gps_driver_attach; any number of times. */
void gps_operations_use(void);

#endif
