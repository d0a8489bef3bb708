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

enum gps_gone_kind { GPS_GONE_MEMORY, GPS_GONE_IMPORT, GPS_GONE_EVENT, GPS_GONE_KINDS };

struct gps_gone {
    uint32_t born,
        ended; /* traces: allocated and freed, opened and closed, created and destroyed */
    uint64_t context;
    uint64_t size;     /* bytes; 0: not known */
    int device;        /* ordinal; -1: not known */
    bool with_context; /* it ended with its context */
};

/* Before the driver's call: as soon as that returns, the address can be another's. */
void gps_gone_note(enum gps_gone_kind kind, uint64_t address, struct gps_gone gone);
/* The same for an allocation that the program frees, by a call with this trace. */
struct gps_alloc;
void gps_gone_freed(const struct gps_alloc *alloc, uint32_t ended);
/* The driver gave the address out (again), or refused what was noted. */
void gps_gone_forget(enum gps_gone_kind kind, uint64_t address);
/* False: it is none of the gone. */
bool gps_gone_find(enum gps_gone_kind kind, uint64_t address, struct gps_gone *gone);

void gps_gone_reset(void); /* in a forked child */

#endif
