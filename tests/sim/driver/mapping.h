/*
 * Where VMM memory lies: reserved addresses, what is mapped there, and which cards may use it. A
 * mapping is a struct block of its own, so that copies and pointer attributes find it as they find
 * any memory. Under the state lock.
 */
#pragma once

#include "abi.h"

struct block;
struct mapping;
struct physical;

/* All CUresult; outputs only on success. Sizes and addresses are in whole blocks, or refused. */
CUresult mapping_reserve(uint64_t size, uint64_t alignment, uint64_t hint, CUdeviceptr *out);
/* Of a whole reservation in which nothing is mapped. */
CUresult mapping_give_back(uint64_t base, uint64_t size);
/* The reservation around an address, mapped or not. */
bool mapping_reservation(uint64_t address, uint64_t *base, uint64_t *size);
CUresult mapping_map(uint64_t address, uint64_t size, struct physical *memory);
/* Both want a range of whole mappings, one behind the other, and wait until nobody holds them; to
 * unmap, a reserved one in which nothing is mapped will do.
 * `access`: CUmemAccess_flags; *changed becomes true if anywhere it was another one. */
CUresult mapping_unmap(uint64_t address, uint64_t size);
CUresult mapping_set_access(uint64_t address, uint64_t size, uint32_t card, unsigned access,
                            bool *changed);
/* The memory that is mapped around an address, or NULL. */
struct physical *mapping_memory(uint64_t address);

/* One holder more, or less; and whether somebody waits to change it. NULL: memory that stays. */
void mapping_hold(struct mapping *mapping, int more);
bool mapping_closing(const struct mapping *mapping);

/* Any block may be asked; all but mappings are open to everybody. */
unsigned mapping_access(const struct block *block, uint32_t card);
bool mapping_allows(const struct block *block, uint32_t card, bool writes);
/* Which kinds of shareable handles it may have, a CUmemAllocationHandleType. */
unsigned mapping_handle_types(const struct block *block);
bool mapping_rdma(const struct block *block); /* its memory may be registered with other hardware */
