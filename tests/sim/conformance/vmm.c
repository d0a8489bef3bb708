/* Rows 44: memory of cuMemCreate. The simulator has none: skipped there. */
#include "gpu.h"
#include "step.h"

#include <unistd.h>

enum { SIZE = 4 << 20 };

/* --- in the peer --- */

static struct {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
} mapped;

static CUresult allow(CUmemAccess_flags flags) {
    CUmemAccessDesc access = {.flags = flags};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return gpu.cuMemSetAccess(mapped.at, SIZE, &access, 1);
}

static CUresult map(struct message *m) {
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUresult result = gpu.cuMemCreate(&mapped.handle, SIZE, &what, 0);
    if (!result)
        result = gpu.cuMemAddressReserve(&mapped.at, SIZE, 0, 0, 0);
    if (!result)
        result = gpu.cuMemMap(mapped.at, SIZE, 0, mapped.handle, 0);
    m->n[0] = mapped.at;
    return result ? result : allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult unmap(void) {
    CUresult result = gpu.cuMemUnmap(mapped.at, SIZE);
    if (!result)
        result = gpu.cuMemAddressFree(mapped.at, SIZE);
    return result ? result : gpu.cuMemRelease(mapped.handle);
}

static CUresult export(void) {
    int descriptor = -1;
    CUresult result = gpu.cuMemExportToShareableHandle(&descriptor, mapped.handle,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    return !result && close(descriptor) ? CUDA_ERROR_UNKNOWN : result;
}

int vmm_do(struct message *m) {
    if (!gpu.cuMemCreate || !gpu.cuMemRelease || !gpu.cuMemAddressReserve || !gpu.cuMemMap ||
        !gpu.cuMemAddressFree || !gpu.cuMemUnmap || !gpu.cuMemSetAccess ||
        !gpu.cuMemExportToShareableHandle)
        return NOT_SIMULATED;
    switch ((enum vmm)m->n[0]) {
    case VMM_MAP:
        return (int)map(m);
    case VMM_READ_ONLY:
        return (int)allow(CU_MEM_ACCESS_FLAGS_PROT_READ);
    case VMM_READ_WRITE:
        return (int)allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case VMM_EXPORT:
        return (int)export();
    default:
        return (int)unmap();
    }
}

/* --- in the parent --- */

static void steps(struct peer *a) {
    const uint64_t p = a->last.n[0];
    check("create, reserve, map, allow", 0, a->last.code);
    check("fill", 0, fill(a, p, SIZE, 46));
    check("reads back", 46, byte_at(a, p));
    check("legacy handle", 1, peer_do(a, OP_GET, p, 0, 0));
    check("  capable", 0, attribute(a, p, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
    check("its range: base", 0,
          (peer_do(a, OP_RANGE, p + 4096, 0, 0), (int64_t)(a->last.n[0] - p)));
    check("  size", SIZE, (int64_t)a->last.n[1]);
    check("cuMemFree", 1, free_code(a, p));
    check("close", 1, close_code(a, p));
    check("a descriptor", 0, peer_do(a, OP_VMM, VMM_EXPORT, 0, 0));
    check("read-only", 0, peer_do(a, OP_VMM, VMM_READ_ONLY, 0, 0));
    check("  fill", 1, fill(a, p, SIZE, 47));
    check("  reads", 46, byte_at(a, p));
    check("read and write again", 0, peer_do(a, OP_VMM, VMM_READ_WRITE, 0, 0));
    check("  fill", 0, fill(a, p, SIZE, 48));
    check("unmap, give back", 0, peer_do(a, OP_VMM, VMM_UNMAP, 0, 0));
    check("reading it", 1, read_code(a, p));
}

void vmm_rows(void) {
    struct peer a;
    peer_start(&a, 1);
    check_row("44");
    if (peer_do(&a, OP_VMM, VMM_MAP, 0, 0) == NOT_SIMULATED)
        check_skip("cuMemCreate: not simulated");
    else
        steps(&a);
    peer_end(&a, 0);
}
