/*
 * chain.h - the libraries behind this one that are called between the program and the driver, too.
 *
 * A program that has them calls them; with us in front, we do. The function that a call goes on to
 * depends on how the program got it: a linked program reaches the first library that defines it, a
 * look-up the address that it would have answered. So with such a library a look-up gets a door
 * (doors.S), which notes that it was used and goes on in the wrapper, and each slot of gps_real is
 * a function of chain.c, which chooses. Calls that such a library makes in turn, while it has one
 * of ours, are the driver's alone: a loop is impossible.
 *
 * Without such a library gps_real is libcuda's, and all of this does nothing. Any thread.
 */
#pragma once

#include "doors/resolver.h"
#include "driver.h"
#include "stack/module.h"

/* libcuda's own addresses; NULL: there is no library behind us, and gps_real has them. */
extern struct gps_real *_Atomic gps_chain_driver;

/* For our own calls: past all other libraries. */
static inline const struct gps_real *gps_chain_own(void) {
    return gps_chain_driver ? gps_chain_driver : &gps_real;
}

/* Fills `real` for a chain. False: there is no such library, and nothing was done. */
bool gps_chain_fill(const struct gps_module *libcuda, const char (*names)[GPS_HOOK_NAME],
                    struct gps_real *real);

/* Whether a caller is such a library: it goes on to the functions that it looks up. */
bool gps_chain_has(const void *caller, const char (*names)[GPS_HOOK_NAME]);

/* The slot of an address that such a library has given, or defines; -1: none. */
int gps_chain_slot_of(const void *address);

/* A look-up for the function of a slot has answered with this address of such a library. */
void gps_chain_found(int slot, void *address);

/* The address to hand out for one of a slot; the chain is filled. */
void *gps_chain_door(int slot, const void *address, void *wrapper);
