/*
 * room.h - room on a device for memory that is taken at once, beside what is promised.
 *
 * Who takes memory claims it first, until the memory is there (process/promise.h). So of two who
 * want the same room at least one sees the other. A block that has just got memory counts twice for
 * a moment. Of a small allocation nobody knows before whether it takes memory: then what is
 * promised may lack for as long as it takes to free it again.
 */
#pragma once

#include "area.h"

#define GPS_ROOM_PLENTY UINT64_MAX

/* A bit for each device; the last is for all others, and for one that is not known (-1). */
static inline uint32_t gps_room_bit(int device) {
    return UINT32_C(1) << (device >= 0 && device < 31 ? device : 31);
}

/* What an allocation takes. */
struct gps_room_claim {
    uint64_t bytes; /* published; 0: none */
    uint64_t begun;
    uint64_t left;  /* free before, if that may be too little; else GPS_ROOM_PLENTY */
    bool contended; /* it was refused because of other claims, which may come to nothing */
    uint8_t gpu[GPS_UUID_BYTES];
};

/* For memory of an area's device. With the lock of area.h, inside a gps_scope that has entered its
 * context. False: there surely is too little, and nothing is claimed. What cannot be known, and a
 * rule with overcommit, are true. */
bool gps_room_claim(const struct gps_area *area, uint64_t bytes, struct gps_room_claim *claim);
/* Others may count it no more, and take the same room. */
bool gps_room_is_late(const struct gps_room_claim *claim);
/* It is taken, or not. With the lock, inside a gps_scope. */
void gps_room_unclaim(struct gps_room_claim *claim);

/* The same where no rule takes the memory, on the current device. */
bool gps_room_claim_on(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes,
                       struct gps_room_claim *claim);
/* Whether the current device has too little for what is promised on it. *left: what is free, if
 * that is not far more than enough. With the lock, inside a gps_scope. */
bool gps_room_is_overdrawn(const uint8_t gpu[GPS_UUID_BYTES], uint64_t *left);

/* What is promised on the current device lacks. True: it is worth another look, and a millisecond
 * has passed, with the program's signals let in. It is for a second, from *until == 0 on; and then
 * no more until there was memory for a block again. Inside a gps_scope, without a lock. */
bool gps_room_await(uint64_t *until);
void gps_room_found(int device);
