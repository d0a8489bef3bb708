/* driver_stream.h - the operations of ops.h that concern streams. */
#ifndef GPS_DRIVER_STREAM_H
#define GPS_DRIVER_STREAM_H

#include <stdbool.h>
#include <stdint.h>

bool gps_stream_op_capturing(uint64_t stream);
int gps_stream_op_wait(uint64_t stream);

#endif
