/*
 * past.h - the past of a handle that cannot be opened: one table for every kind of handle.
 *
 * The record of a region tells it, while there is one. A token tells it without a record: it names
 * the process that made it. A handle of the driver's names none.
 */
#pragma once

#include "directory/record.h"

enum gps_past {
    GPS_PAST_UNKNOWN, /* nothing is known of it */
    GPS_PAST_LIVE,    /* its exporter lives, and has the memory */
    GPS_PAST_OWN,     /* memory of this process itself, freed or not */
    GPS_PAST_FREED,   /* its exporter has freed it, and may have ended since */
    GPS_PAST_ENDED,   /* its exporter has ended, and the memory with it */
    GPS_PASTS
};

/* `record` is NULL where there certainly is none in the directory (-ENOENT). The exporter goes to
 * *exporter unless it is UNKNOWN. In a gps_scope. */
enum gps_past gps_past_of(const uint8_t handle[GPS_HANDLE_BYTES],
                          const struct gps_region_record *record, struct gps_owner *exporter);

/* The code with which a driver answers an open of such a handle of its own. */
int gps_past_code(enum gps_past past);
