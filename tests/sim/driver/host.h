/*
 * Host memory that the driver knows: pinned, and managed (which here simply is host memory that
 * counts as a device's). Under the state lock.
 */
#pragma once

#include "abi.h"

struct host_range {
    uint64_t base, size;
    bool managed, registered; /* registered: the program's own, which the driver has locked */
    uint64_t serial;
    CUcontext context;
};

CUresult host_allocate(CUcontext context, uint64_t size, bool managed, uint64_t *base);
/* Not of registered memory. */
CUresult host_free(uint64_t base, bool managed);
CUresult host_register(CUcontext context, uint64_t base, uint64_t size);
CUresult host_unregister(uint64_t base);
const struct host_range *host_find(uint64_t address);
