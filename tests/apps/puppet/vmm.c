/*
 * vmm.c - memory of cuMemCreate that the program makes itself.
 */
#include "puppet.h"

enum { POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

static int vmm_create(u64 *handle, size_t size, unsigned types, int device) {
    const CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)types,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle made = 0;
    const int code = (int)CU(cuMemCreate)(&made, size, &wanted, 0);
    *handle = made;
    return code;
}

static int vmm_access(u64 at, size_t size, unsigned flags, int device) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = (CUmemAccess_flags)flags};
    return (int)CU(cuMemSetAccess)(at, size, &access, 1);
}

MAKER(vreserve, CUdeviceptr, CU(cuMemAddressReserve)(&made, number(w[2]), 0, 0, 0))
COMMAND(vunreserve, (int)CU(cuMemAddressFree)(value(w[1]), number(w[2])))
MAKER(vcreate, u64,
      vmm_create(&made, number(w[2]), w[3] ? (unsigned)number(w[3]) : POSIX,
                 w[3] && w[4] ? (int)number(w[4]) : 0))
COMMAND(vrelease, (int)CU(cuMemRelease)(value(w[1])))

static int c_vretain(char **w) {
    CUmemGenericAllocationHandle handle = 0;
    const u64 at = value(w[2]) + number(w[3]);
    const int code = (int)CU(cuMemRetainAllocationHandle)(&handle, (void *)(uintptr_t)at);
    return pointer_reply(w[1], code, handle);
}

COMMAND(vmap, (int)CU(cuMemMap)(value(w[1]) + number(w[2]), number(w[3]), 0, value(w[4]), 0))
COMMAND(vunmap, (int)CU(cuMemUnmap)(value(w[1]) + number(w[2]), number(w[3])))
COMMAND(vaccess, vmm_access(value(w[1]) + number(w[2]), number(w[3]), (unsigned)number(w[4]),
                            w[5] ? (int)number(w[5]) : 0))

static int c_vexport(char **w) {
    int descriptor = -1;
    const int code = (int)CU(cuMemExportToShareableHandle)(&descriptor, value(w[1]),
                                                           (CUmemAllocationHandleType)POSIX, 0);
    say(" %d", descriptor);
    return code;
}

/* vtypes NAME: of handles, as the driver says they were asked for */
static int c_vtypes(char **w) {
    CUmemAllocationProp prop = {.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE};
    const int code = (int)CU(cuMemGetAllocationPropertiesFromHandle)(&prop, value(w[1]));
    say(" %u", (unsigned)prop.requestedHandleTypes);
    return code;
}

/* vimport NAME PID DESCRIPTOR: as PyTorch gets it from another process */
static int c_vimport(char **w) {
    CUmemGenericAllocationHandle handle = 0;
    const int process = (int)syscall(SYS_pidfd_open, (pid_t)number(w[2]), 0);
    const int descriptor = (int)syscall(SYS_pidfd_getfd, process, (int)number(w[3]), 0);
    const int code = (int)CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)descriptor,
                                                             (CUmemAllocationHandleType)POSIX);
    close(descriptor);
    close(process);
    return pointer_reply(w[1], code, handle);
}

/* vreuse DESCRIPTOR: closes it, and another file gets its number */
static int c_vreuse(char **w) {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool moved = dup2(other, (int)number(w[1])) >= 0;
    close(other);
    return moved ? 0 : errno;
}

/* vmany NAME COUNT SIZE HANDLE: maps it so often side by side; then gives access to all of it */
static int c_vmany(char **w) {
    const size_t count = number(w[2]), size = number(w[3]);
    int code = 0;
    for (size_t i = 0; !code && i < count; i++)
        code = (int)CU(cuMemMap)(value(w[1]) + i * size, size, 0, value(w[4]), 0);
    return code ? code : vmm_access(value(w[1]), count * size, 3, 0);
}

static void *vmm_thread(void *arg) {
    const u64 rounds = *(const u64 *)arg;
    const size_t size = 2 << 20;
    CUdeviceptr at = 0;
    u64 handle = 0;
    intptr_t failed = (int)CU(cuMemAddressReserve)(&at, size, 0, 0, 0);
    for (u64 i = 0; !failed && i < rounds; i++) {
        failed |= vmm_create(&handle, size, POSIX, 0) | (int)CU(cuMemMap)(at, size, 0, handle, 0) |
                  vmm_access(at, size, 3, 0) | (int)CU(cuMemRelease)(handle) |
                  (int)CU(cuMemUnmap)(at, size);
    }
    return (void *)(failed | (int)CU(cuMemAddressFree)(at, size));
}

/* vthreads COUNT ROUNDS: create, map, access, release, unmap */
static int c_vthreads(char **w) {
    enum { MOST = 16 };
    pthread_t threads[MOST];
    u64 rounds = number(w[2]), count = number(w[1]) < MOST ? number(w[1]) : MOST;
    intptr_t failed = 0;
    for (u64 i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, vmm_thread, &rounds);
    for (u64 i = 0; i < count; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        failed |= (intptr_t)result;
    }
    return (int)failed;
}

/* --- any of these calls, right and wrong, in any order --- */

enum { V_HANDLES = 8, V_PLACES = 12, V_BLOCK = 2 << 20 };

struct vmm_chaos {
    u64 state, handles[V_HANDLES], place;
    CUmemoryPool pool;
    CUdeviceptr pooled;
    u64 hash, calls;
};

static unsigned vmm_random(struct vmm_chaos *chaos, unsigned end) {
    chaos->state = chaos->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chaos->state >> 33) % end;
}

static void vmm_note(struct vmm_chaos *chaos, int code) {
    chaos->hash = (chaos->hash ^ (u64)code) * 1099511628211u;
    chaos->calls++;
}

static void vmm_share(struct vmm_chaos *chaos, u64 from, u64 *to) {
    CUmemGenericAllocationHandle handle = 0;
    int descriptor = -1;
    int code = (int)CU(cuMemExportToShareableHandle)(&descriptor, from,
                                                     (CUmemAllocationHandleType)POSIX, 0);
    vmm_note(chaos, code);
    if (code)
        return;
    code = (int)CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)descriptor,
                                                   (CUmemAllocationHandleType)POSIX);
    vmm_note(chaos, code);
    close(descriptor);
    if (!code)
        *to = handle;
}

static void vmm_ask(struct vmm_chaos *chaos, u64 at, u64 handle) {
    CUmemAllocationProp prop;
    CUdeviceptr base = 0;
    size_t size = 0;
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    unsigned long long flags = 0;
    unsigned char byte = 0;
    vmm_note(chaos, (int)CU(cuMemGetAllocationPropertiesFromHandle)(&prop, handle));
    vmm_note(chaos, (int)CU(cuMemGetAddressRange)(&base, &size, at));
    vmm_note(chaos, (int)CU(cuMemGetAccess)(&flags, &here, at));
    vmm_note(chaos, (int)flags + (int)(size / V_BLOCK));
    vmm_note(chaos, (int)CU(cuMemsetD8)(at, (unsigned char)chaos->calls, 16));
    vmm_note(chaos, (int)CU(cuMemcpyDtoH)(&byte, at, 1));
    vmm_note(chaos, byte);
}

static void vmm_pool(struct vmm_chaos *chaos) {
    const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    switch (vmm_random(chaos, 4)) {
    case 0:
        return vmm_note(chaos, (int)CU(cuMemPoolCreate)(&chaos->pool, &wanted));
    case 1:
        return vmm_note(chaos, (int)CU(cuMemPoolDestroy)(chaos->pool));
    case 2:
        return vmm_note(
            chaos, (int)CU(cuMemAllocFromPoolAsync)(&chaos->pooled, V_BLOCK, chaos->pool, NULL));
    default:
        vmm_note(chaos, (int)CU(cuMemFreeAsync)(chaos->pooled, NULL));
        vmm_note(chaos, (int)CU(cuStreamSynchronize)(NULL));
    }
}

static void vmm_step(struct vmm_chaos *chaos) {
    u64 *const handle = &chaos->handles[vmm_random(chaos, V_HANDLES)];
    const size_t size = (1 + vmm_random(chaos, 3)) * (size_t)V_BLOCK;
    const u64 at = chaos->place + vmm_random(chaos, V_PLACES + 1) * (u64)V_BLOCK +
                   (vmm_random(chaos, 16) ? 0 : 4096);
    CUmemGenericAllocationHandle found = 0;
    int code;
    switch (vmm_random(chaos, 10)) {
    case 0:
    case 1:
        return vmm_note(
            chaos, vmm_create(handle, vmm_random(chaos, 8) ? size : 4096, vmm_random(chaos, 2), 0));
    case 2:
        return vmm_note(chaos, (int)CU(cuMemRelease)(*handle));
    case 3:
    case 4:
        return vmm_note(chaos, (int)CU(cuMemMap)(at, size, 0, *handle, 0));
    case 5:
        return vmm_note(chaos, (int)CU(cuMemUnmap)(at, size));
    case 6:
        return vmm_note(chaos, vmm_access(at, size, vmm_random(chaos, 4), 0));
    case 7:
        code = (int)CU(cuMemRetainAllocationHandle)(&found, (void *)(uintptr_t)at);
        if (!code)
            *handle = found;
        return vmm_note(chaos, code);
    case 8:
        vmm_note(chaos, (int)CU(cuMemAddressFree)(at, size));
        return vmm_random(chaos, 2) ? vmm_pool(chaos) : vmm_share(chaos, *handle, handle);
    default:
        return vmm_ask(chaos, at, *handle);
    }
}

/* A handle that is overwritten while it has references keeps them. */
static void vmm_clean(const struct vmm_chaos *chaos) {
    for (u64 at = 0; at < V_PLACES; at++)
        for (size_t size = 1; size <= 3; size++)
            CU(cuMemUnmap)(chaos->place + at * V_BLOCK, size * V_BLOCK);
    for (size_t i = 0; i < V_HANDLES; i++)
        while (CU(cuMemRelease)(chaos->handles[i]) == CUDA_SUCCESS)
            ;
}

/* vchaos SEED STEPS -> calls, a hash of their codes */
static int c_vchaos(char **w) {
    struct vmm_chaos chaos = {.state = number(w[1])};
    CUdeviceptr place = 0;
    int code = (int)CU(cuMemAddressReserve)(&place, (size_t)V_PLACES * V_BLOCK, 0, 0, 0);
    chaos.place = place;
    for (u64 i = number(w[2]); !code && i > 0; i--)
        vmm_step(&chaos);
    vmm_clean(&chaos);
    code = code ? code : (int)CU(cuMemAddressFree)(place, (size_t)V_PLACES * V_BLOCK);
    say(" %llu %llx", chaos.calls, chaos.hash);
    return code;
}

const struct command vmm_commands[] = {
    {"vreserve", "NAME SIZE", c_vreserve},
    {"vunreserve", "NAME SIZE", c_vunreserve},
    {"vcreate", "NAME SIZE [TYPES [DEVICE]]", c_vcreate},
    {"vrelease", "NAME", c_vrelease},
    {"vretain", "NAME PLACE OFFSET", c_vretain},
    {"vmap", "PLACE OFFSET SIZE NAME", c_vmap},
    {"vunmap", "PLACE OFFSET SIZE", c_vunmap},
    {"vaccess", "PLACE OFFSET SIZE FLAGS [DEVICE]", c_vaccess},
    {"vexport", "NAME", c_vexport},
    {"vtypes", "NAME", c_vtypes},
    {"vimport", "NAME PID DESCRIPTOR", c_vimport},
    {"vreuse", "DESCRIPTOR", c_vreuse},
    {"vmany", "PLACE COUNT SIZE NAME", c_vmany},
    {"vthreads", "COUNT ROUNDS", c_vthreads},
    {"vchaos", "SEED STEPS", c_vchaos},
    {0},
};
