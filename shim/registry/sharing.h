/*
 * sharing.h - ways by which this process has shared memory with others that no table of ours can
 * undo: once used, they count for the life of the process.
 *
 * Whether a process still has such memory cannot be found out. Any thread; no scope; no lock.
 */
#pragma once

#include <stdbool.h>

enum gps_sharing {
    GPS_SHARING_MEMORY_EXPORTED, /* VMM memory of the program's own, by a descriptor */
    GPS_SHARING_MEMORY_IMPORTED,
    GPS_SHARING_POOL, /* a pool, or a pointer of one */
    GPS_SHARING_EXTERNAL,
    GPS_SHARING_MULTICAST,
    GPS_SHARING_DMA_BUF, /* a dma-buf of any memory: other hardware may have its address */
    GPS_SHARING_PEERS,   /* memory of one GPU is open to another */
    GPS_SHARING_FRAMES,  /* whole frames: other processes wait for them, or read slots */
};

void gps_sharing_note(enum gps_sharing way);
bool gps_sharing_has(enum gps_sharing way);
