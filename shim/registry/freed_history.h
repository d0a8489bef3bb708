/*
 * freed_history.h - the addresses that were freed, closed or destroyed and not reused since.
 *
 * The history identifies a second free, close or destroy, and gives the stacks of the two earlier
 * calls. Each kind has a table of fixed size, in which a newer address may replace an older one: a
 * report may be missing but is never wrong. The functions take no lock and allocate nothing, and
 * any thread may call them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* HANDLE: of VMM memory whose last reference was released; twice its number, for the
 * table has even numbers. POINTER: of a pool of another process, imported more than once.
 * MAPPING: a mapping that was unmapped, in an audit. */
enum gps_freed_kind {
    GPS_FREED_MEMORY,
    GPS_FREED_IMPORT,
    GPS_FREED_EVENT,
    GPS_FREED_HANDLE,
    GPS_FREED_POINTER,
    GPS_FREED_MAPPING,
    GPS_FREED_KINDS
};

struct gps_freed {
    uint32_t born;  /* trace of the allocation, open or creation */
    uint32_t ended; /* trace of the free, close or destruction */
    uint64_t context;
    uint64_t size;     /* bytes; 0: not known */
    int device;        /* ordinal; -1: not known */
    bool with_context; /* ended by the destruction of its context */
};

/* Adds an address. It is called before the driver's call, after which the address can be reused. */
void gps_freed_note(enum gps_freed_kind kind, uint64_t address, struct gps_freed freed);
/* The same for an allocation that the program frees, by a call with this trace. */
struct gps_alloc;
void gps_freed_note_allocation(const struct gps_alloc *alloc, uint32_t ended);
/* Removes an address: the driver has reused it, or its call failed. */
void gps_freed_forget(enum gps_freed_kind kind, uint64_t address);
/* False: the address is not in the history. */
bool gps_freed_find(enum gps_freed_kind kind, uint64_t address, struct gps_freed *freed);
/* The freed memory that the address lay in. False: none, or more than one. It looks at all. */
bool gps_freed_around(enum gps_freed_kind kind, uint64_t address, uint64_t *base,
                      struct gps_freed *freed);
