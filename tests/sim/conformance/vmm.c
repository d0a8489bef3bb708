/*
 * Rows 44 to 46: memory of cuMemCreate, one block, two of them in one place, and between processes.
 */
#include "gpu.h"
#include "lane.h"
#include "step.h"

enum { SIZE = 64 * MIB, PLACES = 2, BLOCKS = 2 };

/* --- in the peer --- */

static struct {
    CUmemGenericAllocationHandle blocks[BLOCKS];
    CUdeviceptr places[PLACES];
} have;

static CUmemAllocationProp properties(void) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return wanted;
}

static CUresult granularity(struct message *m) {
    const CUmemAllocationProp wanted = properties();
    size_t bytes = 0;
    CUresult result = gpu.cuMemGetAllocationGranularity(&bytes, &wanted,
                                                        (CUmemAllocationGranularity_flags)m->n[1]);
    m->n[0] = bytes;
    return result;
}

static CUresult create(const struct message *m) {
    const CUmemAllocationProp wanted = properties();
    return gpu.cuMemCreate(&have.blocks[m->n[1]], m->n[2], &wanted, 0);
}

static CUresult reserve(struct message *m) {
    CUdeviceptr *place = &have.places[m->n[1]];
    CUresult result = gpu.cuMemAddressReserve(place, SIZE, 0, 0, 0);
    m->n[0] = *place;
    return result;
}

static CUresult allow(const struct message *m) {
    CUmemAccessDesc access = {.flags = (CUmemAccess_flags)m->n[2]};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return gpu.cuMemSetAccess(have.places[m->n[1]], SIZE, &access, 1);
}

static CUresult allowed(struct message *m) {
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    unsigned long long flags = 0;
    CUresult result = gpu.cuMemGetAccess(&flags, &location, have.places[m->n[1]]);
    m->n[0] = flags;
    return result;
}

/* Whether the handle of what is mapped is the one by which it was mapped. */
static CUresult retain(struct message *m) {
    CUmemGenericAllocationHandle handle = 0;
    void *inside = (void *)(uintptr_t)(have.places[m->n[1]] + 4096);
    CUresult result = gpu.cuMemRetainAllocationHandle(&handle, inside);
    m->n[0] = handle == have.blocks[m->n[2]];
    return result ? result : gpu.cuMemRelease(handle);
}

static CUresult send_block(const struct message *m) {
    int descriptor = -1;
    CUresult result = gpu.cuMemExportToShareableHandle(&descriptor, have.blocks[m->n[1]],
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result)
        return result;
    const int sent = lane_send(LANE_PEER, descriptor);
    return close(descriptor) || !sent ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static CUresult take_block(const struct message *m) {
    const int descriptor = lane_receive(LANE_PEER);
    CUresult result =
        gpu.cuMemImportFromShareableHandle(&have.blocks[m->n[1]], (void *)(intptr_t)descriptor,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    /* It stayed ours. */
    return close(descriptor) && !result ? CUDA_ERROR_UNKNOWN : result;
}

int vmm_do(struct message *m) {
    switch ((enum vmm)m->n[0]) {
    case VMM_GRANULARITY:
        return (int)granularity(m);
    case VMM_CREATE:
        return (int)create(m);
    case VMM_RELEASE:
        return (int)gpu.cuMemRelease(have.blocks[m->n[1]]);
    case VMM_RESERVE:
        return (int)reserve(m);
    case VMM_GIVE_BACK:
        return (int)gpu.cuMemAddressFree(have.places[m->n[1]], SIZE);
    case VMM_MAP:
        return (int)gpu.cuMemMap(have.places[m->n[1]], SIZE, 0, have.blocks[m->n[2]], 0);
    case VMM_UNMAP:
        return (int)gpu.cuMemUnmap(have.places[m->n[1]], SIZE);
    case VMM_ALLOW:
        return (int)allow(m);
    case VMM_ALLOWED:
        return (int)allowed(m);
    case VMM_RETAIN:
        return (int)retain(m);
    case VMM_SEND:
        return (int)send_block(m);
    default:
        return (int)take_block(m);
    }
}

/* --- in the parent --- */

enum { NOTHING = 0, READ = 1, WRITE = 3 }; /* CUmemAccess_flags */

/* Where it is, or 0. */
static uint64_t reserve_place(struct peer *p, uint64_t place) {
    return vmm(p, VMM_RESERVE, place, 0) ? 0 : p->last.n[0];
}

/* Maps a block at a place, and opens it. */
static int put(struct peer *p, uint64_t place, uint64_t block, uint64_t access) {
    const int code = vmm(p, VMM_MAP, place, block);
    return code ? code : vmm(p, VMM_ALLOW, place, access);
}

static uint64_t available(struct peer *p) {
    return peer_do(p, OP_AVAILABLE, 0, 0, 0) ? 0 : p->last.n[0];
}

static void check_attributes(struct peer *a, uint64_t p) {
    check("legacy handle", 1, peer_do(a, OP_GET, p, 0, 0));
    check("  capable", 0, attribute(a, p, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
    check("  type", CU_MEMORYTYPE_DEVICE, attribute(a, p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
    check("  context", 0, attribute(a, p, CU_POINTER_ATTRIBUTE_CONTEXT));
    check("  ordinal", 0, attribute(a, p, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
    check("its range: base", 0,
          (peer_do(a, OP_RANGE, p + 4096, 0, 0), (int64_t)(a->last.n[0] - p)));
    check("  size", SIZE, (int64_t)a->last.n[1]);
    check("cuMemFree", 1, free_code(a, p));
    check("close", 1, close_code(a, p));
}

static void check_access(struct peer *a, uint64_t p) {
    check("read-only", 0, vmm(a, VMM_ALLOW, 0, READ));
    check("  says so", READ, (vmm(a, VMM_ALLOWED, 0, 0), (int64_t)a->last.n[0]));
    check("  fill", 1, fill(a, p, SIZE, 47));
    check("  reads", 46, byte_at(a, p));
    check("read and write again", 0, vmm(a, VMM_ALLOW, 0, WRITE));
    check("  fill", 0, fill(a, p, SIZE, 48));
    check("  reads", 48, byte_at(a, p));
}

static void row_44(struct peer *a) {
    check_row("44");
    check("smallest granularity", 0, vmm(a, VMM_GRANULARITY, 0, 0));
    check("  2 MiB", 2 * MIB, (int64_t)a->last.n[0]);
    check("recommended", 0, vmm(a, VMM_GRANULARITY, 1, 0));
    check("  2 MiB", 2 * MIB, (int64_t)a->last.n[0]);
    check("create 1 MiB", 1, vmm(a, VMM_CREATE, 0, MIB));
    check("create", 0, vmm(a, VMM_CREATE, 0, SIZE));
    const uint64_t p = reserve_place(a, 0);
    check("map, allow", 0, put(a, 0, 0, WRITE));
    check("fill", 0, fill(a, p, SIZE, 46));
    check("reads back", 46, byte_at(a, p));
    check("the handle of what is there", 0, vmm(a, VMM_RETAIN, 0, 0));
    check("  is the one it was mapped by", 1, (int64_t)a->last.n[0]);
    check_attributes(a, p);
    check_access(a, p);
    check("release", 0, vmm(a, VMM_RELEASE, 0, 0));
    check("  reads", 48, byte_at(a, p));
    check("unmap", 0, vmm(a, VMM_UNMAP, 0, 0));
    check("  reading there", 1, read_code(a, p));
    check("give the addresses back", 0, vmm(a, VMM_GIVE_BACK, 0, 0));
    check("  reading there", 1, read_code(a, p));
}

static void row_45(struct peer *a) {
    check_row("45");
    check("create one", 0, vmm(a, VMM_CREATE, 0, SIZE));
    check("  and another", 0, vmm(a, VMM_CREATE, 1, SIZE));
    const uint64_t p = reserve_place(a, 0), q = reserve_place(a, 1);
    check("map one", 0, put(a, 0, 0, WRITE));
    check("  fill", 0, fill(a, p, SIZE, 61));
    check("unmap", 0, vmm(a, VMM_UNMAP, 0, 0));
    check("map the other there", 0, put(a, 0, 1, WRITE));
    check("  fill", 0, fill(a, p, SIZE, 62));
    check("  reads", 62, byte_at(a, p));
    check("unmap", 0, vmm(a, VMM_UNMAP, 0, 0));
    check("map the first again", 0, put(a, 0, 0, WRITE));
    check("  reads", 61, byte_at(a, p));
    check("map it elsewhere, too", 0, put(a, 1, 0, WRITE));
    check("  reads", 61, byte_at(a, q));
    check("  fill", 0, fill(a, q, SIZE, 63));
    check("  reads in the first place", 63, byte_at(a, p));
    for (uint64_t i = 0; i < PLACES; i++) {
        check("unmap, give back", 0, vmm(a, VMM_UNMAP, i, 0) + vmm(a, VMM_GIVE_BACK, i, 0));
        check("  release", 0, vmm(a, VMM_RELEASE, i, 0));
    }
}

/* A makes it and sends it to the parent: the descriptor. */
static int make_and_send(struct peer *a, uint64_t *p) {
    check("A: create", 0, vmm(a, VMM_CREATE, 0, SIZE));
    *p = reserve_place(a, 0);
    check("  map, allow", 0, put(a, 0, 0, WRITE));
    check("  fill", 0, fill(a, *p, SIZE, 50));
    check("  sends a descriptor to a process without context", 0, vmm(a, VMM_SEND, 0, 0));
    return lane_receive(LANE_PARENT);
}

/* The mapping alone holds it from then on. */
static void take(struct peer *b, int descriptor, uint64_t access, uint64_t *q) {
    lane_send(LANE_PARENT, descriptor);
    check("  takes it", 0, vmm(b, VMM_TAKE, 0, 0));
    check("  gives no descriptor of it", 1, vmm(b, VMM_SEND, 0, 0));
    *q = reserve_place(b, 0);
    check("  maps it", 0, put(b, 0, 0, access));
    check("  releases it", 0, vmm(b, VMM_RELEASE, 0, 0));
}

static void check_read_only(struct peer *a, uint64_t p, struct peer *b, uint64_t q) {
    check("  reads what A wrote", 50, byte_at(b, q));
    check("  fill", 1, fill(b, q, SIZE, 51));
    check("  and nothing changed", 50, byte_at(a, p));
    check("  legacy handle", 1, peer_do(b, OP_GET, q, 0, 0));
    check("A: fill", 0, fill(a, p, SIZE, 52));
    check("  B reads that", 52, byte_at(b, q));
    check("B: read and write", 0, vmm(b, VMM_ALLOW, 0, WRITE));
    check("  fill", 0, fill(b, q, SIZE, 53));
    check("  A reads that", 53, byte_at(a, p));
}

/* A is gone, B has it mapped, C has nothing, and the parent has the descriptor. */
static void check_holder(struct peer *b, uint64_t q, struct peer *c, int descriptor) {
    const uint64_t before = available(c);
    uint64_t r;
    check("A killed; B reads on", 53, byte_at(b, q));
    check("B: unmap", 0, vmm(b, VMM_UNMAP, 0, 0));
    check("  give back", 0, vmm(b, VMM_GIVE_BACK, 0, 0));
    check("  only the descriptor is left: it stays charged", 1, available(c) < before + 32 * MIB);
    check("C: is there", 0, c->last.code);
    take(c, descriptor, READ, &r);
    check("  reads what B wrote", 53, byte_at(c, r));
    close(descriptor);
    check("  the descriptor is closed: reads on", 53, byte_at(c, r));
    check("  still charged, and once", 1, available(c) < before + 32 * MIB);
    check("C: unmap", 0, vmm(c, VMM_UNMAP, 0, 0));
    check("  now it is free", 1, available(c) >= before + 32 * MIB);
}

static void row_46(struct peer *a) {
    uint64_t p, q;
    PEERS(b, c);
    check_row("46");
    const int descriptor = make_and_send(a, &p);
    check("  there it is", 1, descriptor >= 0);
    check("B: is there", 0, b.last.code);
    take(&b, descriptor, READ, &q);
    check_read_only(a, p, &b, q);
    peer_end(a, SIGKILL);
    check_holder(&b, q, &c, descriptor);
}

void vmm_rows(void) {
    struct peer a;
    if (!lane_open())
        return;
    peer_start(&a, 1);
    row_44(&a);
    row_45(&a);
    row_46(&a);
    lane_close();
}
