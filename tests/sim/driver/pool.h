/*
 * Memory pools that the program makes or imports. Their handles are addresses of struct pool, which
 * is never freed. Under the state lock.
 */
#pragma once

#include "abi.h"

struct pool {
    uint32_t card, client; /* the client that made it, as the daemon knows it */
    uint64_t serial;       /* there */
    unsigned types;        /* of handles that it can be exported as */
    bool imported, destroyed;
    struct pool *next;
};

/* NULL: no pool that the program made or imported, or one that it destroyed. */
struct pool *pool_find(CUmemoryPool handle);
