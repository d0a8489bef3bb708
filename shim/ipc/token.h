/*
 * token.h - tokens: handles that VMM memory of the program's own gets with `vmm_ipc = on`.
 *
 * A token stands for the run of adjoining mappings from the mapping of a pointer on, up to the end
 * of the reservation, or up to one that no descriptor can be made of: imported memory, an object of
 * multicast, memory of another device. Its record says which process has the run; that process
 * answers processes that open it (token_server.c). A token pins nothing: when one of its mappings
 * is unmapped it is over, and its record a tombstone. The same run has the same token, and one that
 * has grown another one, beside which the old one goes on.
 *
 * Any thread. A program without the key pays a branch for a handle that the driver refuses, and a
 * load for each map and unmap.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

/* The driver has refused a handle. True: the option is on, or the memory lies in blocks of ours
 * (suspend = on), whose run is all of it; and this is the token of the memory there. */
bool gps_token_get(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]);

/* Around an unmap. First the serial of the memory at its beginning, before the books forget it (0:
 * there are no tokens); then, before the driver unmaps, the tokens of its range are over. */
uint64_t gps_token_serial(uint64_t pointer);
void gps_token_end(uint64_t pointer, uint64_t size, uint64_t serial);
/* After a map: reports processes that have the memory open which was mapped there before. */
void gps_token_mapped(uint64_t pointer);

/* Whether another process has a token of this one open, perhaps one that is over: it still has that
 * memory. True where that cannot be found out. Inside a gps_scope. */
bool gps_token_any_open(void);

/* The process ends: removes the tokens' records, but those that other processes have open. */
void gps_token_leave(void);

/* --- passable.c: what a run is made of --- */

/* A mapping of the program's own memory, or a block of ours. */
struct gps_passable {
    uint64_t at, size, serial, handle;
    int device;
    uint64_t place, place_size; /* the reservation around it */
    bool is_block;
};
/* What lies at the address, if a descriptor can be made of it. */
bool gps_passable_at(uint64_t address, struct gps_passable *found);

/* --- token_server.c: the thread that answers processes which open tokens of this one --- */

/* It starts with the first token, and ends with the process. It waits for no caller: one that does
 * not read its reply loses it. */

struct gps_token_run {
    uint64_t at, size, place, place_size; /* the run, and the reservation around it */
};
/* Finds the run of a token. False: the token is not this process's, or it is over. */
typedef bool gps_token_find_fn(const struct gps_id *id, struct gps_token_run *run);

/* In a gps_scope, joined, one thread at a time. 0 or -errno: the thread does not run. */
int gps_token_server_start(gps_token_find_fn *find);
/* The process ends: the driver is touched no more. */
void gps_token_server_stop(void);
/* After the process has become suspended, in which it answers -EBUSY and touches no driver: waits
 * until the request under way is answered. False: that took more nanoseconds. */
bool gps_token_server_await(uint64_t within);
void gps_token_server_reset(void); /* in a forked child */
