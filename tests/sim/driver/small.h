/* Allocations of up to 1 MiB share blocks of 2 MiB, in units of 512 bytes: where they lie in one.
 */
#pragma once

#include "abi.h"

#define SMALL_MOST ((uint64_t)1 << 20)

struct small;

struct small *small_create(void);
void small_destroy(struct small *small);
/* False if there is no room. What was given back last is taken first if it fits, else the lowest.
 */
bool small_take(struct small *small, uint64_t size, uint64_t *offset);
/* `offset` is where an allocation begins. */
void small_give(struct small *small, uint64_t offset);
/* The allocation around *offset: where it begins and how large it was asked for. */
bool small_find(const struct small *small, uint64_t at, uint64_t *offset, uint64_t *size);
unsigned small_live(const struct small *small);
bool small_room(const struct small *small);
