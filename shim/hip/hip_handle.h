/*
 * hip_handle.h - the bytes of HIP's handles that mean something.
 *
 * Some of the 64 bytes are never written, and have undefined values: an id made of all bytes would
 * differ each time for the same memory. All rooms below know a handle by its plain form, in which
 * those bytes are 0; the program's own goes to the runtime as it came. Pure functions. The layout
 * is that of ROCm/clr from 5.6 on (docs/hip.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

/* ROCr's handle of the whole allocation, its size, and the exporter's pid. The offset of a pointer
 * inside is not kept, because every handle opens the whole allocation; nor the exporter's device,
 * which only version 7 writes, and which an importer may lack: device 0 always exists. */
void gps_hip_plain_handle(const uint8_t handle[GPS_HANDLE_BYTES], uint8_t plain[GPS_HANDLE_BYTES]);

/* How far inside its allocation the handle's pointer lay. The runtime ignores it. */
uint64_t gps_hip_handle_offset(const uint8_t handle[GPS_HANDLE_BYTES]);

/* Up to version 7 a name in /dev/shm, then type, pid and ROCr's handle of a signal. */
void gps_hip_plain_event_handle(const uint8_t handle[GPS_HANDLE_BYTES],
                                uint8_t plain[GPS_HANDLE_BYTES]);

/* Puts another pid in place of the exporter's. False: the handle does not carry that pid. */
bool gps_hip_handle_set_pid(uint8_t handle[GPS_HANDLE_BYTES], uint32_t pid, uint32_t instead);
