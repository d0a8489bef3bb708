/*
 * wording.h - texts about calls, with the names of the process's vendor.
 *
 * The catalogue (gpushare/finding.h) and details name CUDA's functions. In a process of another
 * vendor's, cudaFree becomes the same with that vendor's prefix. Set once by the thread that begins
 * the process; the functions may be called from any thread.
 */
#pragma once

#include <stdbool.h>

/* The prefix of the vendor's functions ("hip"), and whether its frees and closes take any address
 * of the memory, which changes some hints. */
void gps_wording_start(const char *vendor, bool by_range);
bool gps_wording_is_by_range(void);

#define GPS_WORDING_BYTES 1024

/* The text itself, or its translation, in `room`. NULL stays NULL. */
const char *gps_wording(const char *text, char room[GPS_WORDING_BYTES]);
