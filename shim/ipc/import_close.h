/*
 * import_close.h - the end of an import: closed by the program, freed as a rule's, gone with its
 * context, or never opened.
 */
#pragma once

#include "import.h"

/* The driver refused what gps_import_prepare has prepared. */
void gps_import_roll_back(struct gps_opening *opening);

/* The program closes a pointer with the driver's close, or frees a rule's import. */
typedef int gps_close_fn(uint64_t pointer);
int gps_import_close(uint64_t pointer, gps_close_fn *close);
int gps_import_free(const struct gps_alloc *alloc);

/* A context is destroyed, with every import opened in it before the epoch; fn (which may be NULL)
 * gets each. */
void gps_import_purge(uint64_t context, uint32_t epoch,
                      void (*fn)(void *arg, const struct gps_import *import), void *arg);
