/*
 * address.c - what the driver says of addresses, and what else it takes them for.
 */
#include "puppet.h"

static int c_range(char **w) {
    u64 base = 0;
    size_t size = 0;
    const int code = do_range(&base, &size, value(w[1]) + number(w[2]));
    say(" %llx %zu", base, size);
    return code;
}

static int c_ordinal(char **w) {
    int ordinal = -1;
    const int code =
        (int)CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, value(w[1]));
    say(" %d", ordinal);
    return code;
}

/* within NAME OTHER OFFSET: what lies in an allocation of the program's. */
static int c_within(char **w) {
    keep(w[1], value(w[2]) + number(w[3]));
    return 0;
}

static int c_value(char **w) {
    say(" %llx", value(w[1]));
    return 0;
}

/* attribute NAME WHICH: as a number */
static int c_attribute(char **w) {
    u64 answer = 0;
    const int code =
        (int)CU(cuPointerGetAttribute)(&answer, (CUpointer_attribute)number(w[2]), argument(w[1]));
    say(" %llx", answer);
    return code;
}

/* told NAME OFFSET: each attribute of the address, by the call for one and by that for many.
 * Addresses count from NAME; of a context is said whether it is the current one, and of ids whether
 * they are those of NAME. */
enum { ATTRIBUTES = 21 };

static bool is_address(int which) {
    return which == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
           which == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
           which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
           which == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR;
}

static void say_told(int which, int code, u64 told, u64 base) {
    CUcontext context = NULL;
    u64 id = 0;
    (void)CU(cuCtxGetCurrent)(&context);
    if (which == CU_POINTER_ATTRIBUTE_BUFFER_ID || which == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) {
        (void)CU(cuPointerGetAttribute)(&id, (CUpointer_attribute)which, base);
        say(" %d=%d:%s", which, code, !told ? "none" : told == id ? "one" : "another");
    } else if (which == CU_POINTER_ATTRIBUTE_CONTEXT) {
        say(" %d=%d:%s", which, code, told == (uintptr_t)context ? "current" : "another");
    } else if (which == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
        say(" %d=%d", which, code);
    } else {
        say(" %d=%d:%lld", which, code,
            (long long)(told && is_address(which) ? told - base : told));
    }
}

static int c_told(char **w) {
    const u64 base = value(w[1]), at = base + number(w[2]);
    CUpointer_attribute which[ATTRIBUTES];
    u64 values[ATTRIBUTES][8] = {{0}};
    void *places[ATTRIBUTES];
    for (int i = 0; i < ATTRIBUTES; i++) {
        u64 told[8] = {0};
        which[i] = (CUpointer_attribute)(i + 1);
        places[i] = values[i];
        const int code = (int)CU(cuPointerGetAttribute)(told, which[i], at);
        say_told(i + 1, code, told[0], base);
    }
    say(" many");
    which[CU_POINTER_ATTRIBUTE_P2P_TOKENS - 1] =
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE; /* it would end */
    const int code = (int)CU(cuPointerGetAttributes)(ATTRIBUTES, which, places, at);
    for (int i = 0; i < ATTRIBUTES; i++)
        say_told(which[i], 0, values[i][0], base);
#ifndef PUPPET_DRIVER
    POINTER_ATTRIBUTES all;
    say(" cuda %d", (int)cudaPointerGetAttributes(&all, (void *)(uintptr_t)at));
    say(" %d %d %lld %lld", (int)all.POINTER_KIND, all.device,
        (long long)((uintptr_t)all.devicePointer - base),
        (long long)(all.hostPointer ? (uintptr_t)all.hostPointer - base : 0));
#endif
    return code;
}

/* mapped NAME OFFSET SIZE: what the calls for memory of cuMemCreate, and those for managed memory,
 * answer about a range: retain, unmap, set access, free the address, map; get access, flags;
 * prefetch, advise */
static int c_mapped(char **w) {
    const u64 at = value(w[1]) + number(w[2]), size = number(w[3]);
    const CUmemAccessDesc read = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = read.location};
    CUmemGenericAllocationHandle handle, block;
    unsigned long long flags = 77;
    say(" %d", (int)CU(cuMemRetainAllocationHandle)(&handle, (void *)(uintptr_t)at));
    say(" %d", (int)CU(cuMemUnmap)(at, size));
    say(" %d", (int)CU(cuMemSetAccess)(at, size, &read, 1));
    say(" %d", (int)CU(cuMemAddressFree)(at, size));
    int code = (int)CU(cuMemCreate)(&block, size, &wanted, 0);
    if (!code) {
        say(" %d", (int)CU(cuMemMap)(at, size, 0, block, 0));
        code = (int)CU(cuMemRelease)(block);
    }
    say(" %d", (int)CU(cuMemGetAccess)(&flags, &read.location, at));
    say(" %lld", (long long)flags);
    say(" %d", (int)CU(cuMemPrefetchAsync)(at, size, read.location, 0, NULL));
    say(" %d", (int)CU(cuMemAdvise)(at, size, CU_MEM_ADVISE_SET_READ_MOSTLY, read.location));
    return code;
}

/* dmabuf NAME OFFSET SIZE: a descriptor of it, which stays open; memops NAME OFFSET: SYNC_MEMOPS */
static int c_dmabuf(char **w) {
    int fd;
    return (int)CU(cuMemGetHandleForAddressRange)(&fd, value(w[1]) + number(w[2]), number(w[3]),
                                                  CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}
COMMAND(multicast, (int)CU(cuMulticastBindAddr)(0, 0, value(w[1]) + number(w[2]), number(w[3]), 0))
/* decompress NAME OFFSET SIZE: the count of bytes comes before them */
static int c_decompress(char **w) {
    const u64 to = value(w[1]) + number(w[2]);
    CUmemDecompressParams part = {.srcNumBytes = 16,
                                  .dstNumBytes = number(w[3]),
                                  .dstActBytes = (cuuint32_t *)(to - sizeof(cuuint32_t)),
                                  .src = (void *)value(w[1]),
                                  .dst = (void *)to};
    return (int)CU(cuMemBatchDecompressAsync)(&part, 1, 0, NULL, NULL);
}
static int c_memops(char **w) {
    const unsigned on = 1;
    return (int)CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                          value(w[1]) + number(w[2]));
}

const struct command address_commands[] = {
    {"range", "NAME [OFFSET]", c_range},
    {"ordinal", "NAME", c_ordinal},
    {"value", "NAME", c_value},
    {"within", "NAME OTHER OFFSET", c_within},
    {"attribute", "NAME WHICH", c_attribute},
    {"told", "NAME OFFSET", c_told},
    {"mapped", "NAME OFFSET SIZE", c_mapped},
    {"dmabuf", "NAME OFFSET SIZE", c_dmabuf},
    {"multicast", "NAME OFFSET SIZE", c_multicast},
    {"decompress", "NAME OFFSET SIZE", c_decompress},
    {"memops", "NAME OFFSET", c_memops},
    {0},
};
