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
    {0},
};
