/*
 * import.h - handles that this process opens and closes, and what it publishes about that.
 *
 * An open writes the intent into our procs/ file, locks the region's record (region_lock.h), and
 * only then reads the region's state: its owner marks the region closing and only then asks for the
 * lock and reads the intents, so whichever comes second sees the other. Then the driver is asked,
 * and what came of it is published. Only the first open and the last close of a region in a context
 * are published (references.h).
 */
#pragma once

#include "open_cache.h"
#include "registry/registry.h"

struct gps_opening {
    struct gps_import import;
    struct gps_region_record record;
    bool is_first;    /* it was not open here when this open began */
    bool counted;     /* it is a token, and the registry has counted this open already */
    bool has_no_slot; /* it is open here, and has no slot */
    bool recorded;    /* the region is published, and `record` is its record */
    bool absent;      /* it certainly is not */
    bool published;   /* the import has a slot by this open, so the cache may keep it */
    bool refused;     /* by the driver: nothing is open by this open, and nothing published */
    enum gps_finding finding;
};

/* The program opens a handle: which region, in which context. */
void gps_import_begin(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]);
/* The program's open, by `open`, which sets *pointer. Its code, or that of a policy that denies it.
 */
int gps_import_open(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                    const uint64_t *pointer, gps_open_fn *open, void *arg);
/* In place of the driver's open where the handle is a token: its code. */
int gps_import_token(struct gps_opening *opening, unsigned flags, uint64_t *pointer);

/* The program closes what gps_registry_close has counted down, by the driver's close. The code; on
 * a failure it is open as before. */
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
 * it allocated: others then open the exporter's memory. False for any other pointer. */
bool gps_import_handle(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]);

/* A context is destroyed, with every import opened in it before the era; fn (which may be NULL)
 * gets each. */
void gps_import_purge(uint64_t context, uint32_t era,
                      void (*fn)(void *arg, const struct gps_import *import), void *arg);
