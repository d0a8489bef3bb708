/*
 * copies.h - bytes of the GPU's memory, kept in main memory under their hash.
 *
 * Equal bytes are there once. The memory is anonymous: a forked child and a core dump do not have
 * it. By the thread of suspension.c alone, without a lock.
 */
#pragma once

#include "digest/digest.h"
#include "registry/hash_table.h"

struct gps_copy {
    struct gps_entry entry; /* the first */
    struct gps_hash hash;
    uint64_t size;
    char *bytes;    /* NULL: still to be mapped (gps_copies_make_room) */
    unsigned users; /* 0: no part needs it (gps_copies_drop_unused) */
    bool torn;      /* the memory changed while it was copied: no look-up finds it */
};

/* The copy of these bytes, made or to be made, with one user more. NULL: no memory to note it. */
struct gps_copy *gps_copies_get(const struct gps_hash *hash, uint64_t size);
/* One user less. */
void gps_copies_put(struct gps_copy *copy);

/* Maps memory for the copies that have none, first that of unused copies, which it drops. False:
 * there is not enough. */
bool gps_copies_make_room(void);
void gps_copies_drop_unused(void);
/* The bytes of all copies. */
uint64_t gps_copies_bytes(void);
