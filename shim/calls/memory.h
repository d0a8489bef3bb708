/*
 * memory.h - allocations and frees, and steps around a question about memory.
 *
 * An allocation goes through gps_memory_allocate from top to bottom, a free through
 * gps_memory_free. Any thread; no scope. The codes are the driver's.
 */
#pragma once

#include "driver/driver_ops.h"
#include "gate/write.h"
#include "ipc/close_before_free.h"

/* An allocation that the program asks for. A front end embeds it in a struct of the arguments. */
struct gps_allocation {
    /* The driver's call. With success it sets `pointer`, and the pitch of rows. */
    int (*call)(struct gps_allocation *asked);
    uint64_t size; /* in bytes; of one row, if it has rows */
    uint64_t pointer;
    uint64_t stream;       /* explicit; of memory of a pool */
    struct gps_rows *rows; /* of pitched memory; NULL: it is linear */
    bool shareable;        /* a rule's memory can take its place */
    bool pooled;           /* memory of a pool, in the order of `stream` */
};

struct gps_rows {
    uint64_t count, pitch;
    /* Sets the pitch as the call would, but allocates nothing. It waits for the device. */
    int (*find_pitch)(struct gps_allocation *asked);
};

/* Sets the outputs of the call, from the driver or from a rule. */
int gps_memory_allocate(struct gps_allocation *asked);

/* Whether the program asks for the handle of memory that it has freed; *code is the answer then.
 * The driver would give it while other processes hold the memory. Memory that the end of the
 * process or of a context was to hand over is still in use by a thread that goes on: it is as
 * before. */
bool gps_memory_export_denied(uint64_t pointer, int *code);

/* The program frees `pointer` with the driver's `release`. Returns the code for the program. */
int gps_memory_free(uint64_t pointer, const struct gps_release *release);

/* The same after the driver's end, when nothing is left to free: it is not a leak. */
void gps_memory_freed_late(uint64_t pointer);

/* --- around a question about memory, which address.h answers unless said --- */

/* How much free memory of the current device the program is told, by the driver's figure. */
uint64_t gps_memory_available(uint64_t available);

/* Maps the block of an address whose attributes are asked for: unmapped, it would have none. */
void gps_memory_attributes(uint64_t address);
/* The driver has refused a question about an address. True: a block may have been swapped there
 * just then, and the driver is to be asked again. */
bool gps_memory_was_swapped(uint64_t address);
/* The program sets SYNC_MEMOPS of pieced memory, for other hardware, or asks for P2P_TOKENS, which
 * sets it. `all` is the allocation, which gets memory and keeps it if a merge rule took it. A
 * driver refuses SYNC_MEMOPS for mapped memory (801; H200, driver 580, 2026-11-23), so it is noted
 * here. */
int gps_memory_sync(const struct gps_write *all, bool synced);
