/*
 * import_close.h - the end of an import: closed by the program, freed as a rule's, gone with its
 * context, or never opened.
 */
#pragma once

#include "import.h"

/* The driver refused what gps_import_prepare has prepared. */
void gps_import_roll_back(struct gps_opening *opening);

/* The program closes what gps_registry_close has counted down, by the driver's close. The code; on
 * a failure it is open as before. */
typedef int gps_close_fn(uint64_t pointer);
int gps_import_close(const struct gps_import *import, enum gps_slot_via via, gps_close_fn *close);
/* Notes for the report of a second close that the program closes it. */
void gps_import_note_closed(const struct gps_import *import);
/* The program frees a rule's import. */
int gps_import_free(const struct gps_alloc *alloc);

/* A context is destroyed, with every import opened in it before the epoch; fn (which may be NULL)
 * gets each. */
void gps_import_purge(uint64_t context, uint32_t epoch,
                      void (*fn)(void *arg, const struct gps_import *import), void *arg);
