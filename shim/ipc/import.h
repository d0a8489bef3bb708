/*
 * import.h - handles that this process opens and closes, and what it publishes about that.
 *
 * An open writes the intent into our procs/ file, locks the region's record (region_lock.h), and
 * only then reads the region's state: its owner marks the region closing and only then asks for the
 * lock and reads the intents, so whichever comes second sees the other. Then the driver opens the
 * handle, and the outcome is published. Only the first open and the last close of a region in a
 * context are published (references.h).
 */
#pragma once

#include "open_cache.h"
#include "registry/registry.h"

/* How far an open has come. A failed open undoes what its stage says. */
enum gps_opening_stage {
    GPS_OPENING_AGAIN,     /* nothing is done: the region is open here, as `import` */
    GPS_OPENING_COUNTED,   /* the same of a token, and the registry has counted this open */
    GPS_OPENING_INTENDED,  /* the intent is in import.slot, and the record is read */
    GPS_OPENING_PUBLISHED, /* the region is open, and this open has written import.slot */
};

struct gps_opening {
    enum gps_opening_stage stage;
    int status; /* of the read of the region's record; -ENOENT: it is certainly not published */
    enum gps_finding finding;
    struct gps_import import;
    struct gps_region_record record;
};

/* The record as it was before the driver's open. NULL: none was read. */
static inline const struct gps_region_record *
gps_opening_record(const struct gps_opening *opening) {
    return opening->status == 0 ? &opening->record : NULL;
}

/* The program opens a handle: which region, in which context. */
void gps_import_begin(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]);
/* Finds it open here, or publishes the intent and reads the region's record. 0, or the code of a
 * policy that denies the open, which is reported. */
int gps_import_prepare(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]);
/* In place of the driver's open where the handle is a token: its code. */
int gps_import_token(const struct gps_opening *opening, unsigned flags, uint64_t *pointer);
/* The driver has opened the handle at `pointer`: records and publishes the import, and reports it
 * where policy has a finding. 0, or a code: it could not be recorded, and is closed. */
int gps_import_commit(struct gps_opening *opening, uint64_t pointer);
/* The open has failed. */
void gps_import_roll_back(const struct gps_opening *opening);

/* The program closes an import that gps_registry_close has counted down, by the driver's close.
 * Returns the code; after a failure the import is open as before. */
typedef int gps_close_fn(uint64_t pointer);
int gps_import_close(const struct gps_import *import, enum gps_slot_via via, gps_close_fn *close);
/* Notes for the report of a second close that the program closes it. */
void gps_import_note_closed(const struct gps_import *import);

/* A rule imports a published region into the current context for an allocation of `size`. 0 and the
 * pointer, or the driver's code, or -1 when the region can no longer be opened (its owner is
 * closing it, or has ended). */
int gps_import_by_rule(const struct gps_region_record *record, uint64_t size, uint64_t *pointer);

/* The program frees a rule's import. */
int gps_import_free(const struct gps_alloc *alloc);
/* The handle of a rule's import, by any address of it, for a program that exports what it believes
 * it allocated: other processes then open the exporter's memory. False for any other pointer. */
bool gps_import_handle(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]);

/* A context is destroyed, with every import opened in it before the era. */
struct gps_reset;
void gps_import_purge(uint64_t context, uint32_t era, struct gps_reset *reset);
