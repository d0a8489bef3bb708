/*
 * gpu_bytes.h - how many bytes of a GPU's memory this process has of one kind, as the directory
 * publishes it: a slot for each GPU (GPS_VIA_OWN, GPS_VIA_MADE), or for each and each
 * reason (GPS_VIA_PRIVATE).
 *
 * The figure is read while its slot is written, so of several threads that publish it the last one
 * publishes the newest. Inside a gps_scope.
 */
#pragma once

#include <stdatomic.h>

#include "references.h"

/* All zero but for the first five fields; a process's figure never moves. */
struct gps_gpu_bytes {
    struct gps_id gpu; /* its UUID */
    enum gps_slot_via via;
    int number;                    /* the argument of `bytes` */
    uint64_t (*bytes)(int number); /* any thread, under the lock of the slots */
    uint64_t reason;               /* GPS_VIA_PRIVATE */
    unsigned slot;
    _Atomic int phase;
};

/* Describes the figure of a device, once; two threads that are the first write the same. False: the
 * driver does not know the device. */
bool gps_gpu_bytes_of_device(struct gps_gpu_bytes *mine, enum gps_slot_via via, int device,
                             uint64_t (*bytes)(int device));
/* 0, or -errno: the next change publishes the figure. Any thread. */
int gps_gpu_bytes_publish(struct gps_gpu_bytes *mine);
