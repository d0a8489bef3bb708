/*
 * The cuMem* calls of virtual memory management: what they check, over physical memory and its
 * mappings. None of them needs a context.
 */
#include "device.h"
#include "link.h"
#include "mapping.h"
#include "physical.h"
#include "state.h"
#include "stream.h"

static CUresult check_location(const CUmemLocation *location) {
    REFUSE(location->type != CU_MEM_LOCATION_TYPE_DEVICE, CUDA_ERROR_INVALID_VALUE);
    return device_valid(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Fabric handles want a channel that no machine has of itself; the other kinds are another
 * system's. */
static CUresult check_properties(const CUmemAllocationProp *properties) {
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->win32HandleMetaData)
        return CUDA_ERROR_INVALID_VALUE;
    REFUSE(properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC, CUDA_ERROR_NOT_PERMITTED);
    if (properties->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->requestedHandleTypes && getenv("GPUSHARE_SIM_NO_DESCRIPTORS"))
        return CUDA_ERROR_NOT_SUPPORTED;
    return check_location(&properties->location);
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t *granularity,
                                               const CUmemAllocationProp *properties,
                                               CUmemAllocationGranularity_flags option) {
    TRY(state_check());
    REFUSE(!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, CUDA_ERROR_INVALID_VALUE);
    TRY(check_properties(properties));
    *granularity = SIM_BLOCK;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                             const CUmemAllocationProp *properties, unsigned long long flags) {
    TRY(state_asked());
    REFUSE(!out || flags || !size || size % SIM_BLOCK, CUDA_ERROR_INVALID_VALUE);
    TRY(check_properties(properties));
    state_lock();
    CUresult result = physical_create(size, properties, out);
    state_unlock();
    state_pause("GPUSHARE_SIM_LATE_CREATE_MS");
    return result;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
    TRY(state_asked());
    STATE_LOCKED();
    struct physical *memory = physical_find(handle);
    if (memory) {
        memory->references--;
        physical_release_unused(memory);
    }
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
    TRY(state_asked());
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    struct physical *memory = mapping_memory((uint64_t)(uintptr_t)address);
    if (memory) {
        memory->references++;
        *out = memory->handle;
    }
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                        CUmemGenericAllocationHandle handle) {
    TRY(state_check());
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    const struct physical *memory = physical_find(handle);
    if (memory)
        *out = memory->properties;
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- between processes --- */

CUresult CUDAAPI cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
    TRY(state_asked());
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    state_lock();
    const struct physical *memory = physical_find(handle);
    CUresult result = memory && !memory->imported && memory->properties.requestedHandleTypes & type
                          ? physical_export(memory, out)
                          : CUDA_ERROR_INVALID_VALUE;
    state_unlock();
    return result;
}

/* By a call whose failure says nothing about the number. */
static bool is_descriptor(int fd) {
    struct pollfd look = {.fd = fd};
    const int cancel = state_uncancelled();
    const bool unknown = poll(&look, 1, 0) < 0;
    pthread_setcancelstate(cancel, NULL);
    return fd >= 0 && (unknown || !(look.revents & POLLNVAL));
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shared,
                                                CUmemAllocationHandleType type) {
    TRY(state_asked());
    int fd = (int)(intptr_t)shared;
    REFUSE(!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_INVALID_VALUE);
    REFUSE(!is_descriptor(fd), CUDA_ERROR_UNKNOWN);
    STATE_LOCKED();
    return physical_import(fd, out);
}

/* --- addresses --- */

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment,
                                     CUdeviceptr hint, unsigned long long flags) {
    TRY(state_asked());
    REFUSE(!out || flags, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    return mapping_reserve(size, alignment, hint, out);
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr base, size_t size) {
    TRY(state_asked());
    STATE_LOCKED();
    return mapping_give_back(base, size);
}

/* A fault in the driver. One whose signal is blocked ends the process at once. */
static void fault(void) {
    const char *number = getenv("GPUSHARE_SIM_FAULT");
    if (!number)
        return;
    raise(atoi(number));
    abort();
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
    CUresult result = state_asked();
    if (result || offset || flags)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    fault();
    STATE_LOCKED();
    struct physical *memory = physical_find(handle);
    if (!memory)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (memory->multicast || (size % SIM_BLOCK == 0 && size && size != memory->size))
        result = CUDA_ERROR_NOT_SUPPORTED; /* a part of a block, and more than it: recorded */
    else
        result = mapping_map(address, size, memory);
    return result;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
    TRY(state_asked());
    state_lock();
    CUresult result = mapping_unmap(address, size);
    state_unlock();
    if (!result)
        stream_hurt(address, size, UINT64_MAX);
    return result;
}

/*
 * --- access ---
 *
 * Neither this nor unmapping waits for anything. Work that runs on the block meanwhile is hurt: on
 * a card mostly, here always. Work of one card is not when another gets access or loses it.
 */

static CUresult check_access(CUdeviceptr address, const CUmemAccessDesc *access) {
    if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_location(&access->location));
    const struct physical *memory = mapping_memory(address);
    REFUSE(!memory, CUDA_ERROR_INVALID_VALUE);
    REFUSE(!device_reaches(device_card(access->location.id), memory->card),
           CUDA_ERROR_INVALID_DEVICE);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
                                size_t count) {
    uint64_t changed = 0; /* cards, a bit each */
    CUresult result = state_asked();
    if (result || !access || !count)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    state_lock();
    for (size_t i = 0; i < count && !result; i++)
        result = check_access(address, &access[i]);
    for (size_t i = 0; i < count && !result; i++) {
        const uint32_t card = device_card(access[i].location.id);
        bool other = false;
        result = mapping_set_access(address, size, card, access[i].flags, &other);
        changed |= (uint64_t)other << card;
    }
    state_unlock();
    if (changed)
        stream_hurt(address, size, changed);
    return result;
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                CUdeviceptr address) {
    struct span span;
    TRY(state_check());
    REFUSE(!flags || !location, CUDA_ERROR_INVALID_VALUE);
    TRY(check_location(location));
    CUresult result = CUDA_SUCCESS;
    STATE_LOCKED();
    if (block_find(address, &span)) /* memory of no mapping has no flags */
        *flags = span.block->mapping ? mapping_access(span.block, device_card(location->id)) : 0;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}
