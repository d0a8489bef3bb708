/*
 * past.h - what a handle was that cannot be opened: one table for every kind of handle.
 *
 * The record of a region says it, while it is there. A token says it without: it names the process
 * that made it. A handle of the driver's names nobody.
 */
#pragma once

#include "directory/record.h"

enum gps_past {
    GPS_PAST_UNKNOWN, /* nothing that is known */
    GPS_PAST_LIVE,    /* its exporter lives, and has it */
    GPS_PAST_OWN,     /* of this process itself, freed or not */
    GPS_PAST_FREED,   /* by its exporter, which may have ended since */
    GPS_PAST_ENDED,   /* its exporter has ended, and the memory with it */
    GPS_PASTS
};

/* `record` is NULL where there certainly is none in the directory (-ENOENT). The exporter goes to
 * *exporter unless it is UNKNOWN. In a gps_scope. */
enum gps_past gps_past_of(const uint8_t handle[GPS_HANDLE_BYTES],
                          const struct gps_region_record *record, struct gps_owner *exporter);

/* What a driver answers to an open of such a handle of its own. */
int gps_past_code(enum gps_past past);
