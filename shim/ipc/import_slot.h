/*
 * import_slot.h - what other processes see of an import: its slot in the directory.
 *
 * A failure to write it is reported, and the call goes on. Inside a gps_scope. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* Publishes the intent to open the region, and sets import->slot. Then it locks the region's record
 * and reads it: 0 or -errno, as of gps_region_read. */
int gps_import_slot_begin(struct gps_import *import, struct gps_region_record *record,
                          const char **why);
/* The import is open. */
void gps_import_slot_commit(const struct gps_import *import);
/* The import was cached, or opened from the cache: corrects its slot. 0: of any import that is
 * open. True: a slot was written. */
bool gps_import_slot_correct(uint64_t pointer);
/* The intent came to nothing, or another open has a slot. */
void gps_import_slot_drop(unsigned slot);

/* An import is over, and not in the registry. The last step of its end: the exporter awaits it. */
void gps_import_slot_end(const struct gps_import *import, bool with_context);
