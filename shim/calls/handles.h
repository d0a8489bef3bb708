/*
 * handles.h - the calls on memory handles: get, open, close.
 *
 * Each function is a whole call of the program's, with the driver's own call as a function, and
 * returns the code for the program. Any thread may call it, and none needs a scope.
 */
#pragma once

#include <stdint.h>

#include "gpushare/region.h"

/* These and the functions below write output only on success. A NULL output goes to the driver. */
typedef int gps_get_handle_fn(uint8_t handle[GPS_HANDLE_BYTES], uint64_t pointer);
typedef int gps_open_handle_fn(const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags,
                               uint64_t *pointer);
typedef int gps_close_handle_fn(uint64_t pointer);

int gps_handle_get(uint8_t handle[GPS_HANDLE_BYTES], uint64_t pointer, gps_get_handle_fn *get);
int gps_handle_open(const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags, uint64_t *pointer,
                    gps_open_handle_fn *open);
/* The opened handle is that of a pointer this far inside the allocation. */
void gps_handle_opened_at_base(uint64_t base, uint64_t offset);
int gps_handle_close(uint64_t pointer, gps_close_handle_fn *close);

/* The call has no place for its result. Called before the driver, which may end the process. */
void gps_handle_no_output(void);
/* A layer above the driver has refused a call. `closed`: the address that it was to close, or 0. */
void gps_handle_refused_early(int code, uint64_t closed);
