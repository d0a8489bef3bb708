/*
 * Device addresses. They are reserved without access, so that a program which follows a device
 * pointer on the host faults as it would with a card; the bytes lie elsewhere (link_reach).
 * Under the state lock.
 */
#pragma once

#include "abi.h"

struct block;

/*
 * Takes whole blocks of addresses for `block`, or returns 0. What was given back last is taken
 * first if it fits, as the real driver does; never `avoid`: a pointer is not the exporter's.
 */
uint64_t space_take(uint64_t size, uint64_t avoid, struct block *block);
void space_give(uint64_t address, uint64_t size);
/* Gives them back, but not to the very next who asks. */
void space_retire(uint64_t address, uint64_t size);
/* Addresses that lead nowhere until space_put says otherwise: at `hint` if that is free. */
uint64_t space_reserve(uint64_t size, uint64_t alignment, uint64_t hint);
/* What lies in a part of a reservation; NULL: nothing any more. */
void space_put(uint64_t address, uint64_t size, struct block *block);
struct block *space_block(uint64_t address);
/* Calls fn for each block. */
void space_each(void (*fn)(struct block *block));
/* Whether it could be a device address at all. */
bool space_owns(uint64_t address);
