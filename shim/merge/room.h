/*
 * room.h - room on a device for memory that is taken at once, beside what is promised.
 *
 * Who takes memory claims it first: the claim is a promise (process/promise.h) until the memory is
 * there. So of two who want the same room at least one sees the other, and what is promised is
 * never taken, not even for a moment. A block that has just got memory counts twice for a moment.
 */
#pragma once

#include "area.h"

#define GPS_ROOM_PLENTY UINT64_MAX

/* What an allocation takes. */
struct gps_room_claim {
    uint64_t bytes; /* published; 0: none */
    uint64_t left;  /* free before, if that may be too little; else GPS_ROOM_PLENTY */
    bool whole;     /* it surely takes its size: not of a pool, nor beside other small ones */
    uint8_t gpu[GPS_UUID_BYTES];
};

/* For memory of an area's device. With the lock of area.h, inside a gps_scope that has entered its
 * context. False: there surely is too little, and nothing is claimed. What cannot be known, and a
 * rule with overcommit, are true. */
bool gps_room_claim(const struct gps_area *area, uint64_t bytes, struct gps_room_claim *claim);
/* It is taken, or not. With the lock, inside a gps_scope. */
void gps_room_unclaim(struct gps_room_claim *claim);

/* The same where no rule takes the memory, on the current device. */
bool gps_room_claim_on(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes,
                       struct gps_room_claim *claim);
/* Whether the current device has too little for what is promised on it, and for so many bytes more.
 * *left: what is free, if that is not far more than enough. With the lock, inside a gps_scope. */
bool gps_room_lacks(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes, uint64_t *left);
