/*
 * Bytes that a card can reach, at the addresses by which the program knows them. As long as they
 * are held nobody unmaps them or takes their access away; who wants to waits for them, and who
 * comes later waits for him. Takes the state lock.
 */
#pragma once

#include "abi.h"

struct mapping;

struct touch {
    uint64_t address, size; /* `size` is cut to what can be reached at once */
    uint32_t card;          /* which one touches it */
    bool writes;
    bool pageable; /* main memory of the program's, by its own address */
    unsigned char *at;
    struct mapping *mapping;
};

/* All of them, with one size; false and none if a first byte may not be touched so. */
bool touch_begin(struct touch *touches, unsigned count);
void touch_end(struct touch *touches, unsigned count);
