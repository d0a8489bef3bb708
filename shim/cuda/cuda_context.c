/* cuda_context.c - the start of the driver, and the end of contexts with all that is in them. */
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "hooks.h"
#include "kernels.h"
#include "lifecycle/lifecycle.h"
#include "lifecycle/teardown.h"
#include "merge/allocation.h"
#include "rules/rules.h"
#include "vmm/mapping.h"

CUresult gps_on_cuInit(unsigned int flags) {
    const CUresult result = gps_real.cuInit(flags);
    if (result == CUDA_SUCCESS)
        gps_lifecycle_driver_ready();
    return result;
}

/* The driver maps what cudaMalloc gave; memory of ours is mapped by us. */
CUresult gps_on_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    const CUresult result = gps_real.cuCtxEnablePeerAccess(peer, flags);
    struct gps_scope scope;
    int device;
    if (result != CUDA_SUCCESS || !gps_rules_active)
        return result;
    int code = gps_scope_enter(&scope, (uintptr_t)peer);
    code = code == GPS_OK ? gps_ops->device(&device) : code;
    gps_scope_end(&scope);
    gps_scope_enter(&scope, 0);
    if (code == GPS_OK)
        gps_mapping_enable_peer(device);
    if (code == GPS_OK && gps_merge_active)
        gps_merge_enable_peer(device);
    gps_scope_end(&scope);
    return result;
}

/* --- a context that is destroyed --- */

struct destroy {
    CUresult (*real)(CUcontext context);
    CUcontext context;
};

static int end_context(CUcontext context, CUresult result, bool destroyed) {
    if (destroyed)
        gps_kernels_forget((uintptr_t)context);
    return (int)result;
}

static int destroy_context(void *arg, bool *destroyed) {
    const struct destroy *destroy = arg;
    const CUresult result = destroy->real(destroy->context);
    *destroyed = result == CUDA_SUCCESS;
    return end_context(destroy->context, result, *destroyed);
}

static CUresult destroyed(CUresult (*real)(CUcontext context), CUcontext context) {
    struct destroy destroy = {real, context};
    if (!context)
        return real(context);
    return (CUresult)gps_teardown_context((uintptr_t)context, true, destroy_context, &destroy);
}

#define DESTROY(name)                                                                              \
    CUresult gps_on_##name(CUcontext ctx) {                                                        \
        return destroyed(gps_real.name, ctx);                                                      \
    }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* Old programs count their uses of a context; the last one destroys it. */
static int detach_context(void *arg, bool *destroyed) {
    const struct destroy *destroy = arg;
    const CUresult result = destroy->real(destroy->context);
    *destroyed = result == CUDA_SUCCESS && !gps_driver_has_context(destroy->context);
    return end_context(destroy->context, result, *destroyed);
}

CUresult gps_on_cuCtxDetach(CUcontext ctx) {
    struct destroy detach = {gps_real.cuCtxDetach, ctx};
    if (!ctx)
        return gps_real.cuCtxDetach(ctx);
    return (CUresult)gps_teardown_context((uintptr_t)ctx, false, detach_context, &detach);
}

/* --- the primary context of a device: reset, or released by its last user --- */

struct primary {
    CUresult (*real)(CUdevice device);
    CUcontext context;
    CUdevice device;
    bool reset;
};

static int end_primary(void *arg, bool *destroyed) {
    const struct primary *primary = arg;
    const CUresult result = primary->real(primary->device);
    *destroyed = result == CUDA_SUCCESS && (primary->reset || !gps_driver_primary(primary->device));
    return end_context(primary->context, result, *destroyed);
}

static CUresult ended(CUresult (*real)(CUdevice device), CUdevice device, bool reset) {
    const CUcontext context = gps_driver_primary(device);
    struct primary primary = {real, context, device, reset};
    if (!context)
        return real(device);
    return (CUresult)gps_teardown_context((uintptr_t)context, reset, end_primary, &primary);
}

#define END_PRIMARY(name, reset)                                                                   \
    CUresult gps_on_##name(CUdevice device) {                                                      \
        return ended(gps_real.name, device, reset);                                                \
    }
END_PRIMARY(cuDevicePrimaryCtxReset, true)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, true)
END_PRIMARY(cuDevicePrimaryCtxRelease, false)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
