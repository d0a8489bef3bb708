/*
 * registry.h - the allocations, exports, imports and events of this process, in hash tables.
 *
 * The tables are exact under threads. Each has a lock of its own; allocations have 64 tables, so
 * that a growing one delays few threads. No lock is held across a driver call or I/O. A look-up
 * copies, and an object that was taken from a table belongs to the thread that took it. So an
 * address that the driver reuses as soon as it is freed is never confused with its earlier use.
 *
 * Objects come from slabs (hash_table.h), so there is no malloc. If memory runs
 * out, an object is not recorded, and the program's call continues as if it had not been seen;
 * an object that the driver cannot end without this library is undone.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "directory/record.h"
#include "log/log.h"
#include "util/transition.h"

/* --- allocations --- */

enum gps_alloc_kind {
    GPS_ALLOC_PLAIN = 0,
    GPS_ALLOC_EXPORTED, /* has a published region */
    GPS_ALLOC_IMPORTED, /* by a rule: memory of another process in place of an allocation */
    GPS_ALLOC_MERGED,   /* by a rule: an area of merge/area.h */
};

struct gps_alloc {
    uint64_t pointer;
    uint64_t size; /* as asked for */
    uint64_t context;
    uint32_t era;              /* see gps_registry_begin_era */
    uint32_t trace;            /* where it was allocated */
    int16_t device;            /* ordinal; -1: not known */
    uint8_t kind;              /* enum gps_alloc_kind */
    struct gps_export *region; /* EXPORTED: its region, owned with the allocation */
};

/* Whether the driver made the allocation at the program's call, and frees it. */
bool gps_alloc_is_drivers(const struct gps_alloc *alloc);

/* Records a live allocation, after the driver's success. Replaces one at the same address, which
 * was freed unseen, and returns its region, if any, now the caller's. */
struct gps_export *gps_registry_add(const struct gps_alloc *alloc);

/* Removes and returns an allocation. False: there is none at exactly this address. */
bool gps_registry_take(uint64_t pointer, struct gps_alloc *alloc);
bool gps_registry_find(uint64_t pointer, struct gps_alloc *alloc);

/* Gives an allocation its region, once. False: it has one already, or is not there (any more). */
bool gps_registry_attach(uint64_t pointer, struct gps_export *region);

/* Whether gps_registry_find lately found a region of it, which is there still. Takes no lock. */
bool gps_registry_is_exported(uint64_t pointer);

/* The other allocations in the same 2 MiB as this pointer, which the driver may place in one block.
 * Returns their number, and one of them in *one. */
unsigned gps_registry_neighbours(uint64_t pointer, struct gps_alloc *one);

/* The allocation nearest to an address outside of it, which lies *behind bytes behind its end, or
 * *before bytes before it; the other is 0. False: there is none. It looks at all. */
bool gps_registry_nearest(uint64_t address, struct gps_alloc *nearest, uint64_t *behind,
                          uint64_t *before);

/* Begins a new era, before a context is destroyed. Its objects of an older era are destroyed with
 * it; those that other threads record from now on, perhaps at the same address, are not. */
uint32_t gps_registry_begin_era(void);
uint32_t gps_registry_era(void); /* the era to record in an allocation, import or event */

/* Removes all allocations of a context older than the era. fn gets each, with the table's lock, and
 * owns its region. */
void gps_registry_purge(uint64_t context, uint32_t era,
                        void (*fn)(void *arg, struct gps_alloc *alloc), void *arg);
/* Removes all allocations of a context (0: of any) that have a region that is wanted (NULL: any).
 * fn gets each, with the table's lock, and owns its region. */
void gps_registry_take_exports(uint64_t context, bool (*wanted)(const struct gps_export *region),
                               void (*fn)(void *arg, struct gps_alloc *alloc), void *arg);
/* Takes allocations that have no region and no rule, at most `max`; returns how many. */
unsigned gps_registry_take_plain(struct gps_alloc *taken, unsigned max);
/* Calls fn for the region of each, which stays where it is. fn is called with the table's lock: no
 * thread takes the allocation meanwhile. */
void gps_registry_each_export(uint64_t context, void (*fn)(void *arg, struct gps_export *region),
                              void *arg);
/* All allocations of a context are another one's from now on. */
void gps_registry_move(uint64_t context, uint64_t to);
/* The bytes of all memory that the driver allocated for this process alone, in whole blocks of 2
 * MiB, from which the driver cuts small ones. */
uint64_t gps_registry_bytes(void);

/* --- exports: a region that this process published --- */

/* The states of an exported region, from its first export to its end. */
enum gps_export_state {
    /* The registry has its allocation. The thread that takes that changes these two. */
    GPS_EXPORT_LIVE,
    GPS_EXPORT_CLOSING, /* the program frees it, and a thread finds out what becomes of it */

    /* The region is freed, and in ipc/deferred.h's list. Who pins it there changes these three. */
    GPS_EXPORT_DEFERRED, /* it waits until its importers have closed it */
    GPS_EXPORT_RESULT,   /* ready = free: it waits for its first importer */
    GPS_EXPORT_FREEING,  /* the driver frees its memory */

    GPS_EXPORT_GONE, /* nothing has it any more */
};

#define GPS_EXPORT_STATES(FROM, TO)                                                                \
    FROM(LIVE, TO(CLOSING) | TO(GONE))                                                             \
    FROM(CLOSING, TO(LIVE) | TO(DEFERRED) | TO(RESULT) | TO(GONE))                                 \
    FROM(DEFERRED, TO(FREEING) | TO(GONE))                                                         \
    FROM(RESULT, TO(DEFERRED) | TO(GONE))                                                          \
    FROM(FREEING, TO(GONE))                                                                        \
    FROM(GONE, GPS_TO_NONE)

/* The importers of an exported region, by the last scan of the directory (ipc/importers.h). */
struct gps_export_users {
    bool held;   /* other processes have it open */
    bool cached; /* other processes keep it mapped after their close */
    bool taken;  /* a result: an importer has opened it */
};

struct gps_export {
    struct gps_region_record record; /* a copy of the published one */
    uint64_t pointer;
    uint64_t context;
    int device;                  /* ordinal */
    const struct gps_rule *rule; /* NULL: exported by the program itself */
    bool published;              /* the record is in the directory, and this process owns it */
    bool lockable; /* processes with its handle could lock the record (region_lock.h) */
    bool vmm;      /* a region of vmm_region.h: the keeper owns the record */
    unsigned slot; /* if vmm: the slot of this process's own use (references.h) */
    uint32_t allocated, exported; /* traces */
    enum gps_export_state state;
    struct gps_export_users users;
    uint64_t until; /* RESULT: when its hand-over ends; else 0 */

    /* Fields of ipc/deferred.h. */
    pthread_t pinner; /* the thread that works on it; 0: none */
    bool lost;        /* CLOSING: its context was destroyed meanwhile, and its memory with it */
    bool at_end; /* the end of its process or context handed it over, and the program may free it */
    bool was_waited_for;             /* an allocation has waited for processes that cache it */
    struct gps_export *next, **link; /* in the list of all */
    struct gps_export *work, *same_bucket; /* in the lists of one pin, and of its scan */
};

/* Whether it becomes a result at its free or process's end: a rule with ready = free made it. */
static inline bool gps_export_becomes_result(const struct gps_export *region) {
    return region->rule && region->rule->ready == GPS_READY_FREE;
}

/* Whether it is a result that no importer has opened yet. */
static inline bool gps_export_is_untaken(const struct gps_export *region) {
    return region->state == GPS_EXPORT_RESULT && !region->users.taken;
}

static inline bool gps_export_is_used(const struct gps_export *region) {
    return region->users.held || region->users.cached;
}

/* --- imports: handles of other processes that are open here --- */

enum gps_import_state {
    GPS_IMPORT_GONE,   /* not in the table: not opened yet, or closed by the driver */
    GPS_IMPORT_OPEN,   /* the program or a rule has it open */
    GPS_IMPORT_CACHED, /* the program has closed it, and it stays mapped (open_cache.h) */
    GPS_IMPORT_ENDING, /* it was cached, and the driver is to close it */
};

/* open_cache.h says what causes each transition. */
#define GPS_IMPORT_STATES(FROM, TO)                                                                \
    FROM(GONE, TO(OPEN))                                                                           \
    FROM(OPEN, TO(CACHED) | TO(GONE))                                                              \
    FROM(CACHED, TO(OPEN) | TO(ENDING) | TO(GONE))                                                 \
    FROM(ENDING, TO(GONE))

/* The registry alone writes these. */
struct gps_import_opens {
    uint64_t open;    /* opens that are not closed yet */
    uint64_t all;     /* since its first */
    uint32_t by_rule; /* of the open ones, those that a rule made in place of an allocation */
    bool repeated;    /* it was opened while it was open, which is reported once */
};

/* The state of an import in open_cache.h. */
struct gps_import_cache {
    int record_file, owner_file; /* numbers of watch.h where it may be cached, else 0 */
    bool in_slot;                /* its slot says that it is cached; it may be open again since */
    bool stale;                  /* a file of its region has changed: it is not kept any more */
    bool taken;                  /* ENDING: a thread has the driver close it */
};

struct gps_import {
    uint64_t pointer;
    enum gps_import_state state;
    struct gps_import_opens opens;
    struct gps_import_cache cache;

    /* The first open. */
    struct gps_id region;
    uint8_t handle[GPS_HANDLE_BYTES];
    uint64_t context;
    enum gps_slot_via via;
    unsigned slot; /* of references.h */
    uint32_t trace;
    uint32_t era;
    uint64_t since; /* in audits, else 0 */

    /* From the region's record at that time; zero if it was not published. */
    struct gps_party exporter;
    uint64_t generation;
    uint64_t size; /* of the region; VIA_RULE: as the program asked; 0: not known */
    int device;    /* ordinal; not published: the one that was current then */
    bool vmm;      /* gpushare has mapped it; the driver has not opened it */
    bool mirrored; /* if vmm: by vmm/mirror.h, the program's own memory of its exporter */
    char name[GPS_NAME_BYTES]; /* of the region, or empty */
};

/* The import that an open found at its address. */
struct gps_previous {
    bool extra; /* the import there was cached, and the driver counts the cache's own open, too: it
                   must be closed once */
    bool over;  /* `import` was there, and is removed. Its context is destroyed, and the thread that
                   destroyed it has not purged it yet; or it was cached, and the driver takes its
                   region and the new one for the same memory; or its region was unknown, and is this
                   one. The caller ends it. */
    struct gps_import import;
};

enum gps_open {
    GPS_OPEN_FIRST,   /* the import is recorded as it is */
    GPS_OPEN_COUNTED, /* it is one more open of an import that has a slot, if by another handle of
                         the same memory: the slot in *import is the caller's to free */
};
/* Records an open that gave import->pointer, and sets import->opens to those there are now. `via`
 * is that of this open. Returns an enum gps_open, or -ENOMEM, or -EEXIST where a rule has it open
 * there already, so that its allocation has that address. */
int gps_registry_open(struct gps_import *import, enum gps_slot_via via,
                      struct gps_previous *previous);
/* Gives an import without a slot this one. False: it has a slot, or is not open any more. */
bool gps_registry_set_slot(uint64_t pointer, unsigned slot);
/* Finds a region that is open in the context; `counts`: as one more open of it by the program. */
bool gps_registry_opened(const struct gps_id *region, uint64_t context, bool counts,
                         struct gps_import *import);
/* Whether the driver has a region open in the context that has a slot, and was opened twice before:
 * one more open only counts. False: perhaps not. It takes no lock. */
bool gps_registry_is_open_twice(const struct gps_id *region, uint64_t context);
/* Counts one more such open of the program's, which gave this pointer. False: that is not so. */
bool gps_registry_count_again(const struct gps_id *region, uint64_t context, uint64_t pointer);
bool gps_registry_import_at(uint64_t pointer, struct gps_import *import);
/* The same by any address of it. It looks at all imports: the driver tells no range of memory that
 * the current device does not reach. */
bool gps_registry_import_around(uint64_t address, struct gps_import *import);
enum gps_close {
    GPS_CLOSE_NONE,   /* nothing is open at this address */
    GPS_CLOSE_ONE,    /* one open is counted down, and the import is removed with the last */
    GPS_CLOSE_CACHED, /* it was the last open: the import is cached, and the newest */
    GPS_CLOSE_DENIED, /* only a rule or the cache has it open: the program may not close it */
};
/* Is called before the driver's close. With CLOSE_ONE and CLOSE_CACHED *import is a copy, whose
 * count is what is left. */
enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via, bool may_cache,
                                  struct gps_import *import);
/* Undoes a close that the driver refused. *import is what gps_registry_close gave. */
void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via);
/* Finds a region that is open in any context of this process. */
bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import);
/* Copies the open imports of one exporter, at most `max`, the oldest first; returns how many. */
unsigned gps_registry_imports_of(const struct gps_owner *exporter, struct gps_import *found,
                                 unsigned max);
/* Finds an import that the driver has opened, whether the program has it open or it is cached. */
bool gps_registry_driver_import(struct gps_import *import);
/* Whether an import of this name by a rule is open. */
bool gps_registry_imports_name(const char *name);
/* Removes and returns any import that is open. False: there is none. */
bool gps_registry_take_import(struct gps_import *import);
/* The same of a context's that is older than the era; cached ones, too. */
bool gps_registry_take_import_of(uint64_t context, uint32_t era, struct gps_import *import);

/* --- imports that open_cache.h keeps; the functions above pass over them where not said --- */

/* Notes that the files of an open import are watched, so that it may be cached when it is closed.
 * False: it is closed already. */
bool gps_registry_watch(const struct gps_import *import, int record_file, int owner_file);
/* A file (-1: each) has changed: its imports are stale; cached ones ENDING. True: one is ENDING. */
bool gps_registry_outdate(int file);
/* The same for all imports that are cached in other contexts than this one (0: in all). */
bool gps_registry_expire(uint64_t context);
/* Opens an import that is cached in this context. */
bool gps_registry_uncache(const struct gps_id *region, uint64_t context, uint32_t trace,
                          uint64_t *pointer);
/* Takes the oldest import that is ENDING, or cached in a context, for the driver to close it. */
bool gps_registry_take_ending(uint64_t context, struct gps_import *import);
/* Removes an import that was taken, after the driver has closed it. */
void gps_registry_ended(uint64_t pointer);
/* Whether an import is ENDING that is stale, or of this region (NULL: of none). */
bool gps_registry_any_ending(const struct gps_id *region);
struct gps_cached {
    unsigned count;
    uint64_t bytes;
};
struct gps_cached gps_registry_cached(void); /* takes no lock */
/* Whether an import is cached or ENDING at this address. */
bool gps_registry_caches(uint64_t pointer);
/* Finds an import (pointer 0: any that is open) whose slot is wrong, and what it must say. For
 * gps_references_rewrite, which then writes it. */
bool gps_registry_correct_slot(uint64_t pointer, unsigned *slot, struct gps_slot *now);

/* --- events that other processes may know --- */

struct gps_event {
    uint64_t event;
    struct gps_id id; /* of its handle, once exported or opened; else 0 */
    bool exported;
    bool opened;     /* it is an event of another process */
    bool recorded;   /* here; known in audits */
    uint32_t waited; /* trace of the first wait for it here; in audits */
    unsigned slot;   /* if opened: of references.h */
    uint64_t context;
    uint32_t era;
    uint32_t trace; /* where it was created or opened */
    uint64_t since; /* when; in audits, else 0 */
    uint32_t exported_at;
};

/* Records an event, in place of an earlier one at its address. False: there is no memory for it. */
bool gps_registry_add_event(const struct gps_event *event);
bool gps_registry_find_event(uint64_t event, struct gps_event *found);
/* Removes and returns an event. False: it is not recorded. */
bool gps_registry_take_event(uint64_t event, struct gps_event *taken);
/* Notes that an event is recorded (`waited`: GPS_NO_TRACE), or where it was first waited for.
 * False: no other process knows it, or that was noted. */
bool gps_registry_note_event(uint64_t event, uint32_t waited, struct gps_event *now);
/* Whether the process has ever had an event that other processes may know. It takes no lock. */
bool gps_registry_has_events(void);
/* Removes and returns an event that was opened or exported. False: there is none. */
bool gps_registry_take_shared_event(struct gps_event *taken);
/* Forgets all events of a context older than the era; fn gets each. */
void gps_registry_purge_events(uint64_t context, uint32_t era,
                               void (*fn)(const struct gps_event *event));
/* Whether an event was exported, or is another process's. */
bool gps_registry_shares_event(void);
/* Finds the event of this process that was exported with the handle of this id. */
bool gps_registry_exported_event(const struct gps_id *id, struct gps_event *found);
