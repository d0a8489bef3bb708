/*
 * diagnose.h - why the driver refused a call, found out afterwards.
 *
 * A refused call is rare and wrong already, so nothing is spared here: the driver is asked about
 * the pointer, and the directory about the handle. A certain reason becomes a finding; an uncertain
 * one is not reported. The program gets the driver's own code in any case. Any thread may call the
 * functions, and none needs a scope.
 */
#pragma once

#include "policy.h"
#include "registry/registry.h"

/* The driver has refused to free a pointer (GPS_ASK_FREED), to close it or to give its handle. */
void gps_diagnose_pointer(enum gps_ask ask, uint64_t pointer, int code);
/* The call was denied, for the memory that begins at `base` was freed before. `finding` is policy's
 * answer, and `detail` may be NULL. */
void gps_diagnose_freed(uint64_t pointer, uint64_t base, enum gps_finding finding,
                        const char *detail);
/* `record` is that of the region as it was read before the driver's open; NULL where there was
 * none. */
void gps_diagnose_open(const struct gps_import *import, const struct gps_region_record *record,
                       unsigned flags, int code);
/* `event` is 0 where it could not be created, because of the flags. */
void gps_diagnose_share_event(uint64_t event, int code);
void gps_diagnose_open_event(const uint8_t handle[GPS_HANDLE_BYTES], int code);
