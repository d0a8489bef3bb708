/*
 * Host memory that the driver knows: pinned, and managed (which here simply is host memory that
 * counts as a device's). Under the state lock.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "abi.h"

struct host_range {
    uint64_t base, size;
    bool managed;
    uint64_t serial;
    CUcontext context;
};

CUresult host_allocate(CUcontext context, uint64_t size, bool managed, uint64_t *base);
CUresult host_free(uint64_t base, bool managed);
const struct host_range *host_find(uint64_t address);

#endif
