/*
 * Memory of cuMemCreate and the handles that name it: physical memory, without addresses. It is
 * held at the daemon, once, as long as this process has a reference to its handle or a mapping of
 * it. Under the state lock.
 */
#pragma once

#include "abi.h"

struct block;

struct physical {
    CUmemGenericAllocationHandle handle;
    uint64_t id, offset, size; /* the daemon's */
    uint32_t card;
    CUmemAllocationProp properties;
    unsigned references, mappings;
    bool imported;  /* then it cannot be exported again */
    bool multicast; /* an object of multicast: no memory */
};

/* All CUresult; outputs only on success. The caller has checked the properties. */
CUresult physical_create(uint64_t size, const CUmemAllocationProp *properties,
                         CUmemGenericAllocationHandle *out);
/* A descriptor that holds it, as the kernel's descriptors hold a card's memory. */
CUresult physical_export(const struct physical *memory, int *fd);
/* Each import is a handle of its own. */
CUresult physical_import(int fd, CUmemGenericAllocationHandle *out);
/* A handle without memory, for multicast. */
CUresult physical_multicast(uint64_t size, CUmemGenericAllocationHandle *out);
/* A checkpoint may have put copies in the place of blocks, and of memory that is not mapped. */
void physical_moved(struct block *block);
void physical_all_moved(void);
/* NULL unless it has references. */
struct physical *physical_find(CUmemGenericAllocationHandle handle);
/* After one reference or mapping less: lets the memory go if that was the last. */
void physical_release_unused(struct physical *memory);
