/*
 * kinds.c - all that the driver tells about allocations, and what its copies and fills of them
 * answer, in words that two processes can compare. Of the driver API alone.
 *
 * usage: kinds BYTES...   allocates them on card 0 and uploads them, says "ready", and answers a
 *                         line of its input with one, until "end": "told KEY=CODE VALUE; ..."
 *
 * Asked with each card current (two, if there are), and with peer access off and on.
 */
#include "must.h"

enum { CARDS = 2, MOST = 8, BLOCK = 2 << 20, OWN = 16 << 20 };

static int cards;
static CUcontext contexts[CARDS];
static CUdeviceptr own[CARDS]; /* of no rule */
static struct {
    CUdeviceptr base;
    size_t size;
} asked[MOST];
static unsigned char *host;

/* What is asked about now, and where. */
static CUdeviceptr base;
static size_t size;
static char stage[64];

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
        printf(" %s", value->context == contexts[0] ? "mine" : value->context ? "another" : "none");
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
    printf("%s%s: %s=%d", stage, place, row->name, (int)code);
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
    printf("%s%s: cuPointerGetAttributes=%d", stage, place, (int)code);
    if (values[0].address)
        printf(" base%+lld", (long long)(values[0].address - base));
    printf(" %zu %d; ", values[1].size, values[2].number);
}

static void print_range(const char *place, CUdeviceptr pointer) {
    CUdeviceptr start = 0;
    size_t length = 0;
    const CUresult code = cuMemGetAddressRange(&start, &length, pointer);
    printf("%s%s: cuMemGetAddressRange=%d", stage, place, (int)code);
    if (code == CUDA_SUCCESS)
        printf(" base%+lld %zu", (long long)(start - base), length);
    printf("; ");
}

static void print_place(const char *place, CUdeviceptr pointer) {
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
        print_attribute(place, pointer, &attributes[i]);
    print_many(place, pointer);
    print_range(place, pointer);
}

/* --- copies and fills --- */

static void print_code(const char *call, CUresult code) {
    printf("%s%s=%d %d; ", stage, call, (int)code, (int)cuCtxSynchronize());
}
#define TELL(call) print_code(#call, call)

static void print_copies(CUdeviceptr mine) {
    TELL(cuMemcpyHtoD(base, host, size));
    TELL(cuMemcpyHtoDAsync(base, host, size, NULL));
    TELL(cuMemcpyDtoH(host, base, size));
    TELL(cuMemcpyDtoHAsync(host, base, size, NULL));
    TELL(cuMemcpyDtoD(mine, base, size));
    TELL(cuMemcpyDtoD(base, mine, size));
    TELL(cuMemcpyDtoDAsync(mine, base, size, NULL));
    TELL(cuMemcpyDtoDAsync(base, mine, size, NULL));
    TELL(cuMemcpy(mine, base, size));
    TELL(cuMemcpy(base, mine, size));
    TELL(cuMemcpyAsync(mine, base, size, NULL));
    TELL(cuMemcpyAsync(base, mine, size, NULL));
    for (int i = 0; i < cards; i++) {
        TELL(cuMemcpyPeer(own[i], contexts[i], base, contexts[0], size));
        TELL(cuMemcpyPeer(base, contexts[0], own[i], contexts[i], size));
        TELL(cuMemcpyPeerAsync(own[i], contexts[i], base, contexts[0], size, NULL));
        TELL(cuMemcpyPeerAsync(base, contexts[0], own[i], contexts[i], size, NULL));
    }
}

static void print_fills(void) {
    TELL(cuMemsetD8(base, 1, size));
    TELL(cuMemsetD8Async(base, 1, size, NULL));
    TELL(cuMemsetD16(base, 1, size / 2));
    TELL(cuMemsetD16Async(base, 1, size / 2, NULL));
    TELL(cuMemsetD32(base, 1, size / 4));
    TELL(cuMemsetD32Async(base, 1, size / 4, NULL));
    TELL(cuMemsetD2D8(base, 1024, 1, 1000, 4));
    TELL(cuMemsetD2D8Async(base, 1024, 1, 1000, 4, NULL));
}

static void print_ends(void) {
    TELL(cuMemcpyDtoH(host, base, size + 1));
    TELL(cuMemcpyHtoD(base, host, size + 1));
    TELL(cuMemsetD8(base, 1, size + 1));
    TELL(cuMemsetD2D8(base, 4096, 1, 4096, (size + BLOCK) / 4096)); /* past the block, too */
}

/* What a call lacks comes before what is wrong with its ends. */
static void print_without_context(CUcontext context) {
    MUST(cuCtxSetCurrent(NULL));
    TELL(cuMemcpyDtoH(host, base, size + 1));
    TELL(cuMemcpyDtoD(base, base, size + 1));
    TELL(cuStreamWriteValue32(NULL, base + size, 1, 0));
    TELL(cuMemFreeAsync(base, NULL));
    MUST(cuCtxSetCurrent(context));
}

/* It is where it was, with its end, though it is older than a context that has gone. */
static void print_after_refused_free(void) {
    CUcontext other;
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    MUST(cuCtxDestroy(other));
    MUST(cuCtxSetCurrent(NULL));
    TELL(cuMemFreeAsync(base, (CUstream)CU_STREAM_LEGACY));
    MUST(cuCtxSetCurrent(contexts[0]));
    TELL(cuMemcpyDtoH(host, base, size + 2));
}

/* --- what else can be done with it --- */

static CUstream beside; /* no part of the capture */

static CUresult free_at_once(CUstream stream) {
    return cuMemFree(base);
}

static CUresult free_ordered(CUstream stream) {
    return cuMemFreeAsync(base, stream);
}

static CUresult free_beside(CUstream stream) {
    return cuMemFreeAsync(base, beside);
}

static CUresult allocate_again(CUstream stream) {
    CUdeviceptr more;
    return cuMemAlloc(&more, size);
}

/* A capture forbids them, and ends with 901 then. On its own stream a free is for memory of a
 * graph. */
static void print_captured(const char *name, CUresult (*call)(CUstream stream)) {
    CUstream stream;
    CUgraph graph = NULL;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const CUresult code = call(stream);
    const CUresult end = cuStreamEndCapture(stream, &graph);
    printf("%scaptured %s=%d %d; ", stage, name, (int)code, (int)end);
    if (graph)
        MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy(stream));
}

static void print_captures(void) {
    MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    print_captured("cuMemFree", free_at_once);
    print_captured("cuMemFreeAsync", free_ordered);
    print_captured("cuMemFreeAsync beside", free_beside);
    print_captured("cuMemAlloc", allocate_again);
    MUST(cuStreamDestroy(beside));
}

static void print_handle(void) {
    CUipcMemHandle handle;
    TELL(cuIpcGetMemHandle(&handle, base));
    TELL(cuIpcGetMemHandle(&handle, base + size - 1));
}

/* What a rule gives goes on there, to the end of its last block. Behind a small allocation others
 * may lie. */
static void print_behind(CUdeviceptr end) {
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    const unsigned on = 1;
    CUipcMemHandle handle;
    CUmemGenericAllocationHandle block;
    unsigned long long flags;
    int descriptor; /* there is none */
    print_place("behind", end);
    TELL(cuIpcGetMemHandle(&handle, end));
    TELL(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, end));
    TELL(cuMemRetainAllocationHandle(&block, (void *)(uintptr_t)end));
    TELL(cuMemGetAccess(&flags, &here, end));
    TELL(cuMemGetHandleForAddressRange(&descriptor, end, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                       0));
}

/* Which turn SYNC_MEMOPS on. */
static void print_tokens(void) {
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    unsigned seen = 0;
    const CUresult code = cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, base);
    MUST(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
    printf("%sP2P_TOKENS=%d, SYNC_MEMOPS %u; ", stage, (int)code, seen);
}

static void print_synced(unsigned on) {
    unsigned seen = !on;
    const CUresult code = cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base);
    MUST(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, base));
    printf("%sset SYNC_MEMOPS to %u=%d %u; ", stage, on, (int)code, seen);
}

/* No two blocks of it are equal. */
static void upload(void) {
    for (size_t i = 0; i < size / 4; i++)
        ((uint32_t *)host)[i] = (uint32_t)(i * 2654435761u);
    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuMemcpyHtoD(base, host, size));
}

static void ask(int card, const char *peer) {
    snprintf(stage, sizeof(stage), "%zu bytes, card %d, peer access %s: ", size, card, peer);
    MUST(cuCtxSetCurrent(contexts[card]));
    print_place("first", base);
    print_place("middle", base + size / 2 + 5);
    print_place("last", base + size - 1);
    print_handle();
    if (size > BLOCK)
        print_behind(base + size);
    print_copies(own[card]);
    print_fills();
    print_ends();
    print_without_context(contexts[card]);
    print_after_refused_free();
    MUST(cuCtxSetCurrent(contexts[card]));
    print_captures();
    print_tokens();
    print_synced(0);
    print_synced(1);
    print_synced(0);
}

static void each(int card, const char *peer) {
    for (int i = 0; asked[i].size; i++) {
        base = asked[i].base;
        size = asked[i].size;
        ask(card, peer);
        upload();
    }
}

static void reach(int from, int to) {
    MUST(cuCtxSetCurrent(contexts[from]));
    printf("card %d: cuCtxEnablePeerAccess=%d; ", from,
           (int)cuCtxEnablePeerAccess(contexts[to], 0));
}

static void answer(void) {
    printf("told ");
    for (int card = 0; card < cards; card++)
        each(card, "off");
    if (cards == CARDS) {
        reach(1, 0);
        reach(0, 1);
        for (int card = 0; card < cards; card++)
            each(card, "on");
    }
    printf("\n");
    fflush(stdout);
}

static void allocate(char **sizes) {
    for (int i = 0; sizes[i] && i < MOST - 1; i++) {
        base = 0;
        size = strtoull(sizes[i], NULL, 10);
        MUST(cuMemAlloc(&base, size));
        asked[i].base = base;
        asked[i].size = size;
        upload();
    }
}

/* The first card has all memory before the second has a context. */
static void begin(int card) {
    CUdevice device;
    MUST(cuDeviceGet(&device, card));
    MUST(cuDevicePrimaryCtxRetain(&contexts[card], device));
    MUST(cuCtxSetCurrent(contexts[card]));
    MUST(cuMemAlloc(&own[card], OWN));
}

int main(int argc, char **argv) {
    char line[64];
    CUdeviceptr behind;
    host = calloc(1, OWN);
    if (argc < 2 || !host)
        return 2;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&cards));
    cards = cards < CARDS ? cards : CARDS;
    begin(0);
    allocate(argv + 1);
    MUST(cuMemAlloc(&behind, BLOCK)); /* perhaps at the end of the block of a small one */
    if (cards == CARDS)
        begin(1);
    printf("ready load 0 start 0\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0)
        answer();
    MUST(cuCtxSetCurrent(contexts[0]));
    for (int i = 0; asked[i].size; i++)
        MUST(cuMemFree(asked[i].base));
    return 0;
}
