/* cuda_mapping.c - CUDA's calls for memory of cuMemCreate: reserved, made, mapped, exported. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/address.h"
#include "calls/mappings.h"
#include "driver/driver_ops.h"
#include "hooks.h"
#include "written.h"

_Static_assert((int)CU_MEM_HANDLE_TYPE_FABRIC == GPS_VMM_FABRIC, "as CUDA has it");
_Static_assert((int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == GPS_VMM_POSIX, "as CUDA has it");

/* --- memory --- */

static int location_device(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : GPS_VMM_NO_DEVICE;
}

/* Whether memory is to get POSIX_FD for tokens (ipc/token.h), which pass it on by descriptors:
 * plain memory of a device. */
static bool is_to_be_passable(const CUmemAllocationProp *prop) {
    return gps_mappings_have_tokens() && prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !prop->win32HandleMetaData &&
           !prop->allocFlags.usage &&
           !((unsigned)prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* If memory cannot be made so, it is made as the program asks, and that call's code counts. */
static CUresult create(CUmemGenericAllocationHandle *out, size_t size,
                       const CUmemAllocationProp *prop, unsigned long long flags, bool *passable) {
    *passable = is_to_be_passable(prop);
    if (*passable) {
        CUmemAllocationProp more = *prop;
        more.requestedHandleTypes =
            (CUmemAllocationHandleType)((unsigned)prop->requestedHandleTypes |
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (gps_real.cuMemCreate(out, size, &more, flags) == CUDA_SUCCESS)
            return CUDA_SUCCESS;
    }
    *passable = false;
    return gps_real.cuMemCreate(out, size, prop, flags);
}

/* Other kinds cannot be replaced by blocks of ours: compressed memory, the host's, or memory with
 * handles of other systems. */
static bool prop_is_plain(const CUmemAllocationProp *prop) {
    return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !prop->win32HandleMetaData &&
           !prop->allocFlags.compressionType && !prop->allocFlags.usage &&
           !((unsigned)prop->requestedHandleTypes &
             ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static uint64_t cuda_memory_take(struct gps_vmm_memory *made, const CUmemAllocationProp *prop) {
    struct gps_block_like like = {.types = (uint32_t)prop->requestedHandleTypes};
    memcpy(like.bytes, prop, sizeof(*prop));
    return prop_is_plain(prop) ? gps_mappings_take(made, &like) : made->handle;
}

CUresult gps_on_cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                            const CUmemAllocationProp *prop, unsigned long long flags) {
    bool passable;
    const CUresult result =
        (CUresult)GPS_MAPPINGS_CODE((int)create(out, size, prop, flags, &passable));
    if (!prop)
        return result;
    struct gps_vmm_memory asked = {.size = size,
                                   .device = location_device(&prop->location),
                                   .types = (uint32_t)prop->requestedHandleTypes,
                                   .origin = GPS_VMM_CREATED};
    if (result != CUDA_SUCCESS) {
        gps_mappings_not_made(&asked, (int)result);
        return result;
    }
    asked.handle = *out;
    asked.passable = passable;
    *out = asked.handle = cuda_memory_take(&asked, prop);
    gps_mappings_made(asked);
    return result;
}

CUresult gps_on_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                       CUmemGenericAllocationHandle handle) {
    struct gps_block_like like;
    if (out && gps_mappings_like(handle, &like)) {
        memcpy(out, like.bytes, sizeof(*out));
        return CUDA_SUCCESS;
    }
    const CUresult result =
        gps_real.cuMemGetAllocationPropertiesFromHandle(out, gps_mappings_unless_taken(handle));
    if (result == CUDA_SUCCESS && gps_mappings_is_passable(handle))
        out->requestedHandleTypes =
            (CUmemAllocationHandleType)((unsigned)out->requestedHandleTypes &
                                        ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    return result;
}

CUresult gps_on_cuMulticastCreate(CUmemGenericAllocationHandle *out,
                                  const CUmulticastObjectProp *prop) {
    const CUresult result = gps_real.cuMulticastCreate(out, prop);
    if (result == CUDA_SUCCESS)
        gps_mappings_made((struct gps_vmm_memory){.handle = *out,
                                                  .size = prop->size,
                                                  .device = GPS_VMM_NO_DEVICE,
                                                  .types = (uint32_t)prop->handleTypes,
                                                  .origin = GPS_VMM_MULTICAST});
    return result;
}

GPS_ENDS(cuMemRelease, CUmemGenericAllocationHandle, gps_mappings_release)

CUresult gps_on_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *pointer) {
    if (gps_place_is_allocated(gps_at((uintptr_t)pointer)))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t taken;
    if (out && gps_mappings_retain((uintptr_t)pointer, &taken)) {
        *out = taken;
        return CUDA_SUCCESS;
    }
    const CUresult result = gps_real.cuMemRetainAllocationHandle(out, pointer);
    if (result == CUDA_SUCCESS)
        *out = gps_mappings_retained(*out);
    else
        gps_mappings_not_retained((uintptr_t)pointer, (int)result);
    return result;
}

CUresult gps_on_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags) {
    const int before = out && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? *(int *)out : 0;
    uint64_t given;
    CUresult result = (CUresult)gps_mappings_give(handle, (uint32_t)type, &given);
    if (result == CUDA_SUCCESS)
        result = gps_real.cuMemExportToShareableHandle(out, given, type, flags);
    if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        gps_mappings_is_passable(handle)) {
        close(*(const int *)out); /* as for memory that was made without that type */
        *(int *)out = before;
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        gps_mappings_exported(handle, *(const int *)out);
    else if (result == CUDA_SUCCESS)
        gps_mappings_exported_otherwise();
    else
        gps_mappings_not_exported(handle, (uint32_t)type, (int)result);
    return result;
}

CUresult gps_on_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shared,
                                               CUmemAllocationHandleType type) {
    if (!out)
        gps_mappings_no_output();
    const CUresult result = gps_real.cuMemImportFromShareableHandle(out, shared, type);
    const bool described = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (result == CUDA_SUCCESS)
        gps_mappings_imported((struct gps_vmm_memory){.handle = *out,
                                                      .device = GPS_VMM_NO_DEVICE,
                                                      .types = (uint32_t)type,
                                                      .origin = GPS_VMM_IMPORTED},
                              described ? (int)(intptr_t)shared : -1);
    else if (described && out)
        gps_mappings_not_imported(shared, (int)result);
    return result;
}

/* A multicast object, or an endpoint that processes share, holds the memory bound to it. */
#define BIND_MEMORY(name, parameters, arguments)                                                   \
    CUresult gps_on_##name parameters {                                                            \
        uint64_t given;                                                                            \
        const int code = gps_mappings_give(handle, 0, &given);                                     \
        if (code != GPS_OK)                                                                        \
            return (CUresult)code;                                                                 \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS)                                                                \
            gps_mappings_bound(handle);                                                            \
        return result;                                                                             \
    }
BIND_MEMORY(cuMulticastBindMem,
            (CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle handle,
             size_t offset, size_t size, unsigned long long flags),
            (object, at, given, offset, size, flags))
BIND_MEMORY(cuMulticastBindMem_v2,
            (CUmemGenericAllocationHandle object, CUdevice device, size_t at,
             CUmemGenericAllocationHandle handle, size_t offset, size_t size,
             unsigned long long flags),
            (object, device, at, given, offset, size, flags))
BIND_MEMORY(cuLogicalEndpointBindMem,
            (unsigned int id, CUdevice device, cuuint64_t at, CUmemGenericAllocationHandle handle,
             cuuint64_t offset, cuuint64_t size, unsigned long long flags),
            (id, device, at, given, offset, size, flags))

/* Binds a range, whose merged memory becomes private first. */
#define BIND_RANGE(name, parameters, arguments)                                                    \
    CUresult gps_on_##name parameters {                                                            \
        const struct gps_write write = gps_range_of(pointer, size);                                \
        struct gps_gate_pass pass;                                                                 \
        int code = gps_mappings_give_range(pointer, size);                                         \
        if (code != GPS_OK || !gps_writes_begin(&write, &pass, &code))                             \
            return (CUresult)code;                                                                 \
        code = (int)gps_real.name arguments;                                                       \
        gps_writes_end(&write, &pass, code);                                                       \
        if (code == GPS_OK)                                                                        \
            gps_mappings_bound_at(pointer);                                                        \
        return (CUresult)code;                                                                     \
    }
BIND_RANGE(cuMulticastBindAddr,
           (CUmemGenericAllocationHandle object, size_t at, CUdeviceptr pointer, size_t size,
            unsigned long long flags),
           (object, at, pointer, size, flags))
BIND_RANGE(cuMulticastBindAddr_v2,
           (CUmemGenericAllocationHandle object, CUdevice device, size_t at, CUdeviceptr pointer,
            size_t size, unsigned long long flags),
           (object, device, at, pointer, size, flags))
BIND_RANGE(cuLogicalEndpointBindAddr,
           (unsigned int id, CUdevice device, cuuint64_t at, CUdeviceptr pointer, cuuint64_t size,
            unsigned long long flags),
           (id, device, at, pointer, size, flags))

static bool binds(const CUarrayMapInfo *map) {
    return map->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
}

typedef CUresult map_arrays_fn(CUarrayMapInfo *maps, unsigned int count, CUstream stream);

static bool is_any_taken(const CUarrayMapInfo *maps, unsigned int count) {
    for (unsigned int i = 0; maps && i < count; i++)
        if (binds(&maps[i]) && gps_mappings_is_taken(maps[i].memHandle.memHandle))
            return true;
    return false;
}

/* A list like the program's with the driver's handles. *code says why there is none. */
static CUarrayMapInfo *give_all(const CUarrayMapInfo *maps, unsigned int count, int *code) {
    CUarrayMapInfo *const given = calloc(count, sizeof(*given));
    uint64_t handle;
    *code = given ? GPS_OK : GPS_OUT_OF_MEMORY;
    for (unsigned int i = 0; i < count && *code == GPS_OK; i++) {
        given[i] = maps[i];
        if (!binds(&maps[i]))
            continue;
        *code = gps_mappings_give(maps[i].memHandle.memHandle, 0, &handle);
        given[i].memHandle.memHandle = handle;
    }
    return given;
}

static CUresult map_arrays(map_arrays_fn *call, CUarrayMapInfo *maps, unsigned int count,
                           CUstream stream) {
    CUarrayMapInfo *given = NULL;
    int code = GPS_OK;
    if (is_any_taken(maps, count))
        given = give_all(maps, count, &code);
    if (code == GPS_OK)
        code = (int)call(given ? given : maps, count, stream);
    free(given);
    for (unsigned int i = 0; code == GPS_OK && i < count; i++)
        if (binds(&maps[i]))
            gps_mappings_bound(maps[i].memHandle.memHandle);
    return (CUresult)code;
}
#define MAP_ARRAY(name)                                                                            \
    CUresult gps_on_##name(CUarrayMapInfo *maps, unsigned int count, CUstream stream) {            \
        return map_arrays(gps_real.name, maps, count, stream);                                     \
    }
MAP_ARRAY(cuMemMapArrayAsync)
MAP_ARRAY(cuMemMapArrayAsync_ptsz)

/* Other hardware reaches the memory by the descriptor from now on. */
CUresult gps_on_cuMemGetHandleForAddressRange(void *handle, CUdeviceptr pointer, size_t size,
                                              CUmemRangeHandleType type, unsigned long long flags) {
    const struct gps_write write = gps_range_of(pointer, size);
    struct gps_gate_pass pass;
    int code;
    if (!gps_writes_begin(&write, &pass, &code))
        return (CUresult)code;
    code = (int)gps_real.cuMemGetHandleForAddressRange(handle, pointer, size, type, flags);
    gps_writes_end(&write, &pass, code);
    if (code == GPS_OK)
        gps_mappings_held_by_dma_buf();
    return (CUresult)code;
}

struct external {
    struct gps_external import;
    CUexternalMemory *out;
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from;
};

static int real_external(const struct gps_external *import) {
    const struct external *const external = (const struct external *)import;
    return (int)gps_real.cuImportExternalMemory(external->out, external->from);
}

/* The driver takes over a descriptor that it imports. */
CUresult gps_on_cuImportExternalMemory(CUexternalMemory *out,
                                       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from) {
    if (from && from->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
        const struct external external = {{real_external, from->handle.fd}, out, from};
        return (CUresult)gps_mappings_import_external(&external.import);
    }
    const CUresult result = gps_real.cuImportExternalMemory(out, from);
    if (result == CUDA_SUCCESS)
        gps_mappings_external();
    return result;
}

/* --- addresses --- */

CUresult gps_on_cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr at,
                                    unsigned long long flags) {
    const CUresult result = gps_real.cuMemAddressReserve(out, size, alignment, at, flags);
    if (result == CUDA_SUCCESS)
        gps_mappings_reserved(*out, size);
    return result;
}

#define END_RANGE(name, call)                                                                      \
    static int real_##name(uint64_t pointer, uint64_t size) {                                      \
        return (int)gps_real.name(pointer, size);                                                  \
    }                                                                                              \
    CUresult gps_on_##name(CUdeviceptr pointer, size_t size) {                                     \
        return (CUresult)call(pointer, size, real_##name);                                         \
    }
END_RANGE(cuMemAddressFree, gps_mappings_unreserve)
END_RANGE(cuMemUnmap, gps_mappings_unmap)

struct map {
    struct gps_map map;
    unsigned long long flags;
};

static int real_map(const struct gps_map *map, uint64_t handle) {
    return (int)gps_real.cuMemMap(map->pointer, map->size, map->offset, handle,
                                  ((const struct map *)map)->flags);
}
CUresult gps_on_cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
    const struct map call = {{real_map, pointer, size, offset, handle, !flags}, flags};
    return (CUresult)gps_mappings_map(&call.map);
}

static unsigned location_bit(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? (unsigned)location->id : GPS_VMM_HOST;
}

struct allow {
    struct gps_allow allow;
    const CUmemAccessDesc *access;
    size_t count;
};

static int cuda_real_allow(const struct gps_allow *allow, uint64_t pointer, uint64_t size) {
    const struct allow *const call = (const struct allow *)allow;
    return (int)gps_real.cuMemSetAccess(pointer, size, call->access, call->count);
}

/* The device, if it is the only one that gets access, and for reads and writes. */
static int sole_device(const CUmemAccessDesc *access, size_t count) {
    return access && count == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                   access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               ? access->location.id
               : -1;
}

CUresult gps_on_cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                               size_t count) {
    const struct allow call = {
        {cuda_real_allow, pointer, size, sole_device(access, count)}, access, count};
    const CUresult result = (CUresult)gps_mappings_allow(&call.allow);
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        gps_mappings_allowed(pointer, size, location_bit(&access[i].location),
                             access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                             access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return result;
}
