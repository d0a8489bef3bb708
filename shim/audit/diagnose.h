/*
 * diagnose.h - why the driver refused a call, found out afterwards.
 *
 * A refused call is rare and wrong already, so here nothing is spared: the driver is asked what the
 * pointer is, the directory whose the handle was. What is certain becomes a finding; what is not
 * stays silent. The program gets the driver's own code in any case. Needs no scope. Thread-safe.
 */
#ifndef GPS_DIAGNOSE_H
#define GPS_DIAGNOSE_H

#include "ipc/import.h"

void gps_diagnose_free(uint64_t pointer, int code);
void gps_diagnose_close(uint64_t pointer, int code);
/* `opening`: as gps_import_prepare left it; its record is looked at as it is now. */
void gps_diagnose_open(const struct gps_opening *opening, unsigned flags, int code);
void gps_diagnose_export(uint64_t pointer, int code);
/* `event` 0: it could not be created, for the flags. */
void gps_diagnose_share_event(uint64_t event, int code);
void gps_diagnose_open_event(const uint8_t handle[GPS_HANDLE_BYTES], int code);

#endif
