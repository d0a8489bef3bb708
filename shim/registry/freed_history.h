/*
 * freed_history.h - what is no more: addresses that were freed, closed or destroyed and not given
 * out again.
 *
 * By these a second free, close or destroy is known, with the stacks of both earlier calls. A table
 * of fixed size for each kind: the newest of an address's place wins, an older one is forgotten (a
 * report less, never a wrong one). No lock, no allocation; safe from any thread.
 */
#ifndef GPS_FREED_HISTORY_H
#define GPS_FREED_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum gps_freed_kind { GPS_FREED_MEMORY, GPS_FREED_IMPORT, GPS_FREED_EVENT, GPS_FREED_KINDS };

struct gps_freed {
    uint32_t born,
        ended; /* traces: allocated and freed, opened and closed, created and destroyed */
    uint64_t context;
    uint64_t size;     /* bytes; 0: not known */
    int device;        /* ordinal; -1: not known */
    bool with_context; /* it ended with its context */
};

/* Before the driver's call: as soon as that returns, the address can be another's. */
void gps_freed_note(enum gps_freed_kind kind, uint64_t address, struct gps_freed gone);
/* The same for an allocation that the program frees, by a call with this trace. */
struct gps_alloc;
void gps_freed_note_allocation(const struct gps_alloc *alloc, uint32_t ended);
/* The driver gave the address out (again), or refused what was noted. */
void gps_freed_forget(enum gps_freed_kind kind, uint64_t address);
/* False: it is none of the gone. */
bool gps_freed_find(enum gps_freed_kind kind, uint64_t address, struct gps_freed *gone);

void gps_freed_reset(void); /* in a forked child */

#endif
