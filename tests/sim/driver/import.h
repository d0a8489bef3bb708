/*
 * Memory of other processes that is open here. A block is opened once a device, whatever handles
 * lead to it; each handle, that is each offset, has its own count. Under the state lock.
 */
#pragma once

#include "abi.h"

#include "handle.h"

struct block;

CUresult import_open(CUcontext context, const struct handle *handle, CUdeviceptr *out);
/* Maps the memory of the daemon's block anew, whatever is open of it: as a runtime of AMD's does.
 */
CUresult import_attach(CUcontext context, uint64_t id, const struct handle *handle,
                       CUdeviceptr *out);
CUresult import_close(CUdeviceptr base);
/* The opening around `at`, an offset in the block. */
bool import_find(const struct block *block, uint64_t at, uint64_t *offset, uint64_t *size);
/* The block goes: so do its openings. */
void import_forget(struct block *block);
