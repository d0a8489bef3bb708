/*
 * registry.h - what this process has allocated, exported, imported and created: all uthash tables.
 *
 * Exact under threads. Each table has its own lock (allocations have 64, so that one growing table
 * holds up few), never held across a driver call or I/O. Nothing is shared by reference: a look-up
 * copies, and an object that leaves a table belongs to the thread that took it until it is put back
 * or given on. So an address that the driver hands out again the moment it is freed is never
 * confused with what it was before.
 *
 * Objects come from slabs (hash_table.h): no malloc in the steady state. When memory
 * runs out an object is not recorded, and the program's call goes on as if it had not been seen.
 */
#ifndef GPS_REGISTRY_H
#define GPS_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "directory/record.h"
#include "log/log.h"

/* --- allocations --- */

enum gps_alloc_kind {
    GPS_ALLOC_PLAIN = 0,
    GPS_ALLOC_EXPORTED, /* has a published region */
    GPS_ALLOC_IMPORTED, /* a rule's: memory of another process, for which the program asked by name
                         */
};

struct gps_alloc {
    uint64_t pointer;
    uint64_t size; /* as asked for */
    uint64_t context;
    uint32_t epoch;            /* see gps_registry_epoch */
    uint32_t trace;            /* where it was allocated */
    int16_t device;            /* ordinal; -1: not known */
    uint8_t kind;              /* enum gps_alloc_kind */
    struct gps_export *region; /* EXPORTED: its region, owned with the allocation */
};

/* Records a live allocation, after the driver's success. One that is recorded at this address is
 * replaced, and its region, if it had one, is the caller's: the driver has handed the address out
 * again, so it was freed where we do not see. */
struct gps_export *gps_registry_add(const struct gps_alloc *alloc);

/* Removes and returns it; false when there is none at exactly this address. */
bool gps_registry_take(uint64_t pointer, struct gps_alloc *alloc);
bool gps_registry_find(uint64_t pointer, struct gps_alloc *alloc);

/* An allocation gets its region, exactly once: false when it has one or is not there (any more). */
bool gps_registry_attach(uint64_t pointer, struct gps_export *region);

/* Another allocation in the same 2 MiB as this pointer, which the driver may give out in one block:
 * how many there are, and one of them. */
unsigned gps_registry_neighbours(uint64_t pointer, struct gps_alloc *one);

/* A context is about to go: everything of it recorded before this call goes with it, and what
 * another thread records from now on, at an address that may be the same, does not. */
uint32_t gps_registry_epoch(void);
uint32_t gps_registry_now(void); /* what to record in an allocation or import */

/* Removes all allocations of a context older than the epoch; regions go to fn, which owns them. */
void gps_registry_purge(uint64_t context, uint32_t epoch,
                        void (*fn)(void *arg, struct gps_alloc *alloc), void *arg);
/* Removes all allocations that have a region (context 0: of any) and gives them to fn, which owns
 * them. */
void gps_registry_take_exports(uint64_t context, void (*fn)(void *arg, struct gps_alloc *alloc),
                               void *arg);
size_t gps_registry_count(void);

/* --- exports: a region that this process published --- */

struct gps_export {
    struct gps_region_record record; /* our copy of what is published */
    uint64_t pointer;
    uint64_t context;
    int device;                   /* ordinal */
    const struct gps_rule *rule;  /* NULL: exported by the program itself */
    bool published;               /* the record is in the directory, and ours */
    bool kept;                    /* VMM: vmm_region.h's; the record is the keeper's */
    unsigned slot;                /* KEPT: that this process has it; references.h's */
    uint32_t allocated, exported; /* traces */
    bool reported; /* that it outlives, or is held beyond, what it should: not to be said again */

    /* waiting.h's, once it owns the region */
    bool final;                      /* ready = free: freed by the program */
    bool claimed;                    /* final, and taken by an importer */
    bool leaving;                    /* not freed by the program: its process or context ends */
    bool held;                       /* as the last scan found it */
    bool busy;                       /* some thread's, for one pass */
    struct gps_export *next, **link; /* in the list of all */
    struct gps_export *work, *same_bucket; /* of a pass, of its scan */
};

/* --- imports: a handle that is open here --- */

struct gps_import {
    uint64_t pointer;
    uint64_t context;
    struct gps_id region;
    uint64_t count; /* opens without their close */
    uint64_t opens; /* in all, since it was first opened */
    bool reopened;  /* it was opened while it was open, which is reported once */
    unsigned slot;  /* references.h's */
    uint32_t trace; /* where it was opened */
    int device;     /* ordinal of the one that was current then */
    uint32_t epoch;
    uint32_t by_rule; /* of the count, opens that a rule made in place of an allocation */
    uint64_t generation;
    enum gps_slot_via via;
    bool kept;     /* VMM: mapped by us, not opened by the driver */
    uint64_t size; /* of the region; VIA_RULE: as the program asked; 0: not known */

    char name[GPS_NAME_BYTES]; /* of the region, or empty */
    uint8_t handle[GPS_HANDLE_BYTES];
    struct gps_party exporter; /* zero when the region is not published */
};

/* Counts one more successful open that gave import->pointer, and sets import->count to the number
 * of opens now. 1: it is the first, and *import is recorded as it is. More: another open came
 * before, and the slot in *import is the caller's to free. `via`: of this open. */
void gps_registry_open(struct gps_import *import, enum gps_slot_via via);
/* False: it is not open any more. */
bool gps_registry_set_slot(uint64_t pointer, unsigned slot);
bool gps_registry_opened(const struct gps_id *region, uint64_t context, struct gps_import *import);
bool gps_registry_import_at(uint64_t pointer, struct gps_import *import);
enum gps_close {
    GPS_CLOSE_NONE,  /* nothing is open at this address */
    GPS_CLOSE_ONE,   /* one open is counted down, and the import removed with the last */
    GPS_CLOSE_RULES, /* the program closes what only a rule has opened: nothing was done */
};
/* Before the driver's close. CLOSE_ONE: *import is a copy, its count what is left. */
enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via,
                                  struct gps_import *import);
/* The driver refused the close: *import is what gps_registry_close gave. */
void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via);
/* Whether a region is open in any context of this process. */
bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import);
/* Removes and returns any one; false: nothing is open. */
bool gps_registry_take_import(struct gps_import *import);
/* Whether a rule's import of this name is open here. */
bool gps_registry_imports_name(const char *name);
/* Forgets all imports of a context older than the epoch; fn gets each. */
void gps_registry_purge_imports(uint64_t context, uint32_t epoch,
                                void (*fn)(void *arg, const struct gps_import *import), void *arg);

/* --- events that other processes may know --- */

struct gps_event {
    uint64_t event;
    struct gps_id id; /* of its handle, once exported or opened; else 0 */
    bool exported;
    bool opened;   /* another process's */
    unsigned slot; /* OPENED: references.h's */
    uint64_t context;
    uint32_t epoch;
    uint32_t trace; /* where it was created or opened */
    uint32_t exported_at;
};

/* Recorded as it is, in place of what was recorded at its address. */
void gps_registry_add_event(const struct gps_event *event);
bool gps_registry_find_event(uint64_t event, struct gps_event *found);
/* Removes and returns it. */
bool gps_registry_take_event(uint64_t event, struct gps_event *taken);
/* Forgets all events of a context older than the epoch; fn gets each. */
void gps_registry_purge_events(uint64_t context, uint32_t epoch,
                               void (*fn)(const struct gps_event *event));
/* The event of this process's that was exported as this handle. */
bool gps_registry_exported_event(const struct gps_id *id, struct gps_event *found);

/* In a forked child: forgets everything, without touching what the parent's threads had locked. */
void gps_registry_reset_allocations(void);
void gps_registry_reset_imports(void);
void gps_registry_reset_events(void);

#endif
