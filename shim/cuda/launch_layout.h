/*
 * launch_layout.h - which parameters of a kernel may have pointers, and where they lie.
 *
 * The driver is asked once a kernel, and again where there is no room left. Any thread, in a signal
 * handler, too: nothing here waits.
 */
#pragma once

#include "driver.h"

/* A parameter that has room for a pointer. */
struct gps_parameter {
    uint16_t number; /* from 1; 0: behind the last one */
    uint16_t offset, size;
};

enum { GPS_PARAMETERS = 512 }; /* what is beyond is not known */
struct gps_layout_room {
    struct gps_parameter list[GPS_PARAMETERS + 1];
};

/* In the room, or where it stays. `f` may be a CUkernel. */
const struct gps_parameter *gps_launch_layout(CUfunction f, struct gps_layout_room *room);

/* Kernels are about to end: the driver can give their handles to others. */
void gps_launch_layouts_forget(void);
