/*
 * A place of several blocks, for rows that call the driver themselves, in a child of their own
 * (check_in_child).
 */
#pragma once

#include "gpu.h"

#include <stddef.h>

enum { READ = CU_MEM_ACCESS_FLAGS_PROT_READ, WRITE = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

/* Brings the driver up, with the first device's primary context current. */
CUresult place_start(void);
CUdeviceptr place_reserve(size_t size);
/* A new block, mapped and writable; and its handle. */
CUmemGenericAllocationHandle place_block(CUdeviceptr at, size_t size);
CUresult place_map(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle block);
CUresult place_allow(CUdeviceptr at, size_t size, CUmemAccess_flags access);
