/*
 * launch_layout.h - the parameters of a kernel that may have pointers, and their places.
 *
 * The driver is called once for each kernel, and again where there was no room left. Any thread, in
 * a signal handler, too: nothing here waits.
 */
#pragma once

#include "driver.h"

/* A parameter that has room for a pointer. */
struct gps_parameter {
    uint16_t number; /* from 1; 0: behind the last one */
    uint16_t offset, size;
};

enum { GPS_PARAMETERS = 512 }; /* further parameters are not looked at */
struct gps_layout_room {
    struct gps_parameter list[GPS_PARAMETERS + 1];
};

/* The layout, in the room or in a place that stays. `f` may be a CUkernel. */
const struct gps_parameter *gps_launch_layout(CUfunction f, struct gps_layout_room *room);

/* Kernels are about to end: the driver gives their handles to others (H200, 580.159.04, 2026-11-29:
 * of a library that is loaded again, 20 of 20 times; of a module 1 of 20). */
void gps_launch_layouts_forget(void);
