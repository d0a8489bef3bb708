/*
 * attributes.c - all that the driver tells about an allocation, in words that two processes can
 * compare. Of the driver API alone.
 *
 * usage: attributes BYTES   allocates and uploads them, says "ready", and answers a line of its
 *                           input with one, until "end": what it is told, "KEY=CODE VALUE; ..."
 *
 * Asked at the first byte, in the middle and at the last; and whether another card reaches it.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST = 0x5a };

static CUdevice device;
static CUcontext context;
static CUdeviceptr base;
static size_t size;

static void must(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", call, (int)code);
    exit(1);
}

/* --- attributes --- */

enum meaning { NUMBER, CODE, CONTEXT, SAME, FROM_BASE, AS_AT_BASE };

/* Wide enough for each of them; the driver writes as much as it has. */
union value {
    int number;
    unsigned long long wide;
    size_t size;
    CUdeviceptr address;
    CUcontext context;
    char bytes[64];
};

static const struct attribute {
    const char *name;
    int which;
    enum meaning meaning;
} attributes[] = {
    {"CONTEXT", CU_POINTER_ATTRIBUTE_CONTEXT, CONTEXT},
    {"MEMORY_TYPE", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, NUMBER},
    {"DEVICE_POINTER", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, SAME},
    {"HOST_POINTER", CU_POINTER_ATTRIBUTE_HOST_POINTER, CODE},
    {"P2P_TOKENS", CU_POINTER_ATTRIBUTE_P2P_TOKENS, CODE},
    {"SYNC_MEMOPS", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, NUMBER},
    {"BUFFER_ID", CU_POINTER_ATTRIBUTE_BUFFER_ID, AS_AT_BASE},
    {"IS_MANAGED", CU_POINTER_ATTRIBUTE_IS_MANAGED, NUMBER},
    {"DEVICE_ORDINAL", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, NUMBER},
    {"IS_LEGACY_CUDA_IPC_CAPABLE", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, NUMBER},
    {"RANGE_START_ADDR", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, FROM_BASE},
    {"RANGE_SIZE", CU_POINTER_ATTRIBUTE_RANGE_SIZE, NUMBER},
    {"MAPPED", CU_POINTER_ATTRIBUTE_MAPPED, NUMBER},
    {"ALLOWED_HANDLE_TYPES", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, NUMBER},
    {"IS_GPU_DIRECT_RDMA_CAPABLE", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, NUMBER},
    {"ACCESS_FLAGS", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, NUMBER},
    {"MEMPOOL_HANDLE", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, NUMBER},
    {"MAPPING_SIZE", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, NUMBER},
    {"MAPPING_BASE_ADDR", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, FROM_BASE},
    {"MEMORY_BLOCK_ID", CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, AS_AT_BASE},
    {"IS_HW_DECOMPRESS_CAPABLE", 21, NUMBER},
};

static unsigned long long at_base(int which) {
    union value value = {.wide = 0};
    (void)cuPointerGetAttribute(&value, (CUpointer_attribute)which, base);
    return value.wide;
}

static void print_value(const struct attribute *attribute, const union value *value,
                        CUdeviceptr pointer) {
    switch (attribute->meaning) {
    case NUMBER:
        printf(" %llu", value->wide);
        break;
    case CONTEXT:
        printf(" %s", value->context == context ? "mine" : value->context ? "another" : "none");
        break;
    case SAME:
        printf(" %s", value->address == pointer ? "itself" : "another");
        break;
    case FROM_BASE:
        printf(" base%+lld", (long long)(value->address - base));
        break;
    case AS_AT_BASE:
        printf(" %s", value->wide == at_base(attribute->which) ? "as at the base" : "another");
        break;
    case CODE:
        break;
    }
}

static void print_attribute(const char *place, CUdeviceptr pointer, const struct attribute *row) {
    union value value = {.wide = 0};
    const CUresult code = cuPointerGetAttribute(&value, (CUpointer_attribute)row->which, pointer);
    printf("%s %s=%d", place, row->name, (int)code);
    if (code == CUDA_SUCCESS)
        print_value(row, &value, pointer);
    printf("; ");
}

/* The same by the call that asks for many. */
static void print_many(const char *place, CUdeviceptr pointer) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    union value values[3] = {{.wide = 0}};
    void *all[] = {&values[0], &values[1], &values[2]};
    const CUresult code = cuPointerGetAttributes(3, which, all, pointer);
    printf("%s cuPointerGetAttributes=%d base%+lld %zu %d; ", place, (int)code,
           (long long)(values[0].address - base), values[1].size, values[2].number);
}

static void print_range(const char *place, CUdeviceptr pointer) {
    CUdeviceptr start = 0;
    size_t length = 0;
    const CUresult code = cuMemGetAddressRange(&start, &length, pointer);
    printf("%s cuMemGetAddressRange=%d base%+lld %zu; ", place, (int)code,
           (long long)(start - base), length);
}

static void print_place(const char *place, CUdeviceptr pointer) {
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        print_attribute(place, pointer, &attributes[i]);
    print_many(place, pointer);
    print_range(place, pointer);
}

/* --- what else can be done with it --- */

static void print_handle(void) {
    CUipcMemHandle handle;
    printf("cuIpcGetMemHandle=%d; ", (int)cuIpcGetMemHandle(&handle, base));
}

/* The other card reads all of it into memory of its own, and tells the last byte. */
static void print_peer(void) {
    CUcontext other;
    CUdevice second;
    CUdeviceptr there = 0;
    unsigned char byte = 0;
    int able = 0, cards = 0;
    if (cuDeviceGetCount(&cards) != CUDA_SUCCESS || cards < 2 ||
        cuDeviceGet(&second, 1) != CUDA_SUCCESS ||
        cuDeviceCanAccessPeer(&able, second, device) != CUDA_SUCCESS || !able)
        return;
    must(cuDevicePrimaryCtxRetain(&other, second), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(other), "cuCtxSetCurrent");
    const CUresult enabled = cuCtxEnablePeerAccess(context, 0);
    must(cuMemAlloc(&there, size), "cuMemAlloc");
    const CUresult copied = cuMemcpyDtoD(there, base, size);
    const CUresult read = cuMemcpyDtoH(&byte, there + size - 1, 1);
    unsigned flags = 0;
    const CUresult asked =
        cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, base + size / 2);
    printf("peer=enable %d, copy %d, read %d %u, flags %d %u; ", (int)enabled, (int)copied,
           (int)read, byte, (int)asked, flags);
    must(cuMemFree(there), "cuMemFree");
    must(cuCtxDisablePeerAccess(context), "cuCtxDisablePeerAccess");
    must(cuDevicePrimaryCtxRelease(second), "cuDevicePrimaryCtxRelease");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void answer(void) {
    printf("told ");
    print_place("first", base);
    print_place("middle", base + size / 2 + 5);
    print_place("last", base + size - 1);
    print_handle();
    print_peer();
    printf("\n");
    fflush(stdout);
}

/* No two blocks of it are equal. */
static void upload(void) {
    uint32_t *bytes = malloc(size + 4);
    if (!bytes)
        exit(3);
    for (size_t i = 0; i < size / 4; i++)
        bytes[i] = (uint32_t)(i * 2654435761u);
    ((unsigned char *)bytes)[size - 1] = LAST;
    must(cuMemcpyHtoD(base, bytes, size), "cuMemcpyHtoD");
    free(bytes);
}

int main(int argc, char **argv) {
    char line[64];
    if (argc != 2)
        return 2;
    size = strtoull(argv[1], NULL, 10);
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuMemAlloc(&base, size), "cuMemAlloc");
    upload();
    printf("ready load 0 start 0\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0)
        answer();
    must(cuMemFree(base), "cuMemFree");
    return 0;
}
