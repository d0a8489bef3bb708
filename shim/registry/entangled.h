/*
 * entangled.h - ways by which this process has shared memory with others that no table of ours can
 * undo: once used, they count for the life of the process.
 *
 * Whether somebody still has such memory cannot be found out. Any thread; no scope; no lock.
 */
#pragma once

#include <stdbool.h>

enum gps_entangled {
    GPS_ENTANGLED_MEMORY_EXPORTED, /* VMM memory of the program's own, by a descriptor */
    GPS_ENTANGLED_MEMORY_IMPORTED,
    GPS_ENTANGLED_POOL, /* a pool, or a pointer of one */
    GPS_ENTANGLED_EXTERNAL,
    GPS_ENTANGLED_MULTICAST,
    GPS_ENTANGLED_DMA_BUF, /* of any memory: other hardware may have its address */
    GPS_ENTANGLED_PEERS,   /* memory of one GPU is open to another */
    GPS_ENTANGLED_FRAMES,  /* whole frames: others wait for it, or read its slots */
};

void gps_entangle(enum gps_entangled way);
bool gps_is_entangled(enum gps_entangled way);
