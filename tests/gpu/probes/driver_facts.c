/*
 * driver_facts.c - what a driver answers to copies past the end of memory, to questions about
 * memory of cuMemAlloc, and to addresses that are reserved and have no memory; and what one call
 * over many mappings costs.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
#define ASK(question, call)                                                                        \
    do {                                                                                           \
        printf("%-60s %d\n", question, (int)(call));                                               \
    } while (0)

enum { MAPPINGS = 1024 };

static const CUmemLocation card = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static double microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static CUmemGenericAllocationHandle block(size_t size) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = card};
    CUmemGenericAllocationHandle handle = 0;
    ASK("create", cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static CUresult allow(CUdeviceptr at, size_t size, CUmemAccess_flags flags) {
    const CUmemAccessDesc access = {.location = card, .flags = flags};
    return cuMemSetAccess(at, size, &access, 1);
}

static void past_the_end(size_t size) {
    char *host = calloc(1, 2 * MIB);
    CUdeviceptr memory, other;
    cuMemAlloc(&memory, size);
    cuMemAlloc(&other, size);
    const CUdeviceptr tail = memory + size - 8191;
    printf("of %zu bytes:\n", size);
    ASK("  an upload past the end by a byte", cuMemcpyHtoD(tail, host, 8192));
    ASK("  the same, asynchronous", cuMemcpyHtoDAsync(tail, host, 8192, 0));
    ASK("  past the end by 1 MiB", cuMemcpyHtoD(memory + size - MIB, host, 2 * MIB));
    ASK("  from a byte before the beginning", cuMemcpyHtoD(memory - 1, host, 16));
    ASK("  a download past the end by a byte", cuMemcpyDtoH(host, tail, 8192));
    ASK("  a fill past the end by a byte", cuMemsetD8(tail, 1, 8192));
    ASK("  a copy whose source is past the end", cuMemcpyDtoD(other, tail, 8192));
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 4096,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = memory + size - 3 * 4096 - 100,
                          .dstPitch = 4096,
                          .WidthInBytes = 100,
                          .Height = 4};
    ASK("  four rows, of which the last ends at the end", cuMemcpy2D(&rows));
    rows.WidthInBytes = 101;
    ASK("  four rows, of which the last ends a byte behind it", cuMemcpy2D(&rows));
    cuMemFree(memory);
    cuMemFree(other);
    free(host);
}

static void memory_of_cuMemAlloc(void) {
    CUdeviceptr memory;
    CUmemGenericAllocationHandle handle;
    unsigned long long flags = 77;
    unsigned one = 1;
    int descriptor;
    cuMemAlloc(&memory, 32 * MIB);
    for (int which = 1; which <= 21; which++) {
        unsigned long value[8] = {0};
        if (which == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            continue;
        const CUresult code = cuPointerGetAttribute(value, (CUpointer_attribute)which, memory);
        printf("attribute %2d %48s%d   %#lx\n", which, "", (int)code, value[0]);
    }
    ASK("set SYNC_MEMOPS",
        cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory + 4096));
    ASK("dma-buf of all of it",
        cuMemGetHandleForAddressRange(&descriptor, memory, 32 * MIB,
                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK("dma-buf past the end",
        cuMemGetHandleForAddressRange(&descriptor, memory, 64 * MIB,
                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ASK("retain", cuMemRetainAllocationHandle(&handle, (void *)memory));
    ASK("get access", cuMemGetAccess(&flags, &card, memory));
    printf("  its flags: %llu\n", flags);
    ASK("unmap", cuMemUnmap(memory, 32 * MIB));
    ASK("set access", allow(memory, 32 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    ASK("free its address range", cuMemAddressFree(memory, 32 * MIB));
    ASK("prefetch", cuMemPrefetchAsync(memory, 4096, card, 0, 0));
    ASK("advise", cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, card));
    cuMemFree(memory);
}

static void one_call_over_many(void) {
    static CUmemGenericAllocationHandle blocks[MAPPINGS];
    const size_t size = 2 * MIB, all = MAPPINGS * size;
    CUdeviceptr at;
    cuMemAddressReserve(&at, all, 0, 0, 0);
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = card};
    for (int i = 0; i < MAPPINGS; i++)
        cuMemCreate(&blocks[i], size, &prop, 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MAPPINGS; i++)
            cuMemMap(at + i * size, size, 0, blocks[i], 0);
        double begun = microseconds();
        allow(at, all, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        printf("one access over %d blocks of 2 MiB: %.0f us\n", MAPPINGS, microseconds() - begun);
        begun = microseconds();
        cuMemUnmap(at, all);
        printf("one unmap over them: %.0f us\n", microseconds() - begun);
        for (size_t i = 0; i < MAPPINGS; i++)
            cuMemMap(at + i * size, size, 0, blocks[i], 0);
        begun = microseconds();
        for (size_t i = 0; i < MAPPINGS; i++)
            allow(at + i * size, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        printf("an access for each: %.0f us\n", microseconds() - begun);
        begun = microseconds();
        for (size_t i = 0; i < MAPPINGS; i++)
            cuMemUnmap(at + i * size, size);
        printf("an unmap for each: %.0f us\n", microseconds() - begun);
    }
    for (int i = 0; i < MAPPINGS; i++)
        cuMemRelease(blocks[i]);
    ASK("reserve 157 GiB", cuMemAddressReserve(&at, (size_t)157 << 30, 0, 0, 0));
}

static void end_of_a_capture(void) {
    CUstream stream, other;
    CUgraph graph;
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK("destroy a stream that captures", cuStreamDestroy(stream));
    ASK("  then begin a capture on another", cuStreamBeginCapture(other, 0));
    ASK("  and end it", cuStreamEndCapture(other, &graph));
}

static void without_memory(CUcontext context) {
    CUdeviceptr reserved, memory;
    CUgraph graph;
    CUgraphExec instance;
    CUgraphNode copy, fill, more;
    void *host = calloc(1, MIB);
    cuMemAddressReserve(&reserved, 64 * MIB, 0, 0, 0);
    cuMemAlloc(&memory, 4 * MIB);
    cuGraphCreate(&graph, 0);
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = host,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = memory,
                         .WidthInBytes = 4096,
                         .Height = 1,
                         .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS bytes = {.dst = memory, .elementSize = 1, .width = 4096, .height = 1};
    cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &box, context);
    cuGraphAddMemsetNode(&fill, graph, NULL, 0, &bytes, context);
    cuGraphInstantiate(&instance, graph, 0);
    box.dstDevice = bytes.dst = reserved;
    ASK("no memory: add a memcpy node", cuGraphAddMemcpyNode(&more, graph, NULL, 0, &box, context));
    ASK("  add a memset node", cuGraphAddMemsetNode(&more, graph, NULL, 0, &bytes, context));
    ASK("  set the parameters of a node", cuGraphMemcpyNodeSetParams(copy, &box));
    ASK("  of an instance's memcpy node",
        cuGraphExecMemcpyNodeSetParams(instance, copy, &box, context));
    ASK("  of an instance's memset node",
        cuGraphExecMemsetNodeSetParams(instance, fill, &bytes, context));
    CUtexObject texture;
    const CUDA_TEXTURE_DESC plain = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
    linear.res.linear.devPtr = reserved;
    linear.res.linear.format = CU_AD_FORMAT_FLOAT;
    linear.res.linear.numChannels = 1;
    linear.res.linear.sizeInBytes = 4096;
    ASK("  a texture", cuTexObjectCreate(&texture, &linear, &plain, NULL));
    CUtensorMap tensor __attribute__((aligned(64)));
    const cuuint64_t sizes[] = {256, 256}, pitch[] = {1024};
    const cuuint32_t box_sizes[] = {64, 64}, steps[] = {1, 1};
    ASK("  a tensor map",
        cuTensorMapEncodeTiled(&tensor, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)reserved, sizes,
                               pitch, box_sizes, steps, 0, 0, 0, 0));
    ASK("  write a value in a stream's order", cuStreamWriteValue32(0, reserved, 1, 0));
    ASK("  wait for a value", cuStreamWaitValue32(0, reserved, 0, CU_STREAM_WAIT_VALUE_EQ));
    CUstreamBatchMemOpParams operation = {.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                          .writeValue.address = reserved};
    ASK("  batched memory operations", cuStreamBatchMemOp(0, 1, &operation, 0));
    ASK("  prefetch", cuMemPrefetchAsync(reserved, 4096, card, 0, 0));
    ASK("  advise", cuMemAdvise(reserved, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, card));
    cuMemMap(reserved, 2 * MIB, 0, block(2 * MIB), 0);
    allow(reserved, 2 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    box.dstDevice = reserved + 2 * MIB - 100;
    ASK("half of it without memory: add a memcpy node",
        cuGraphAddMemcpyNode(&more, graph, NULL, 0, &box, context));
    allow(reserved, 2 * MIB, CU_MEM_ACCESS_FLAGS_PROT_READ);
    box.dstDevice = reserved;
    ASK("read-only: add a memcpy node", cuGraphAddMemcpyNode(&more, graph, NULL, 0, &box, context));
    ASK("  write a value in a stream's order", cuStreamWriteValue32(0, reserved, 1, 0));
    ASK("  and wait for it", cuCtxSynchronize());
}

int main(void) {
    static const size_t sizes[] = {3 * MIB / 2, 3 * MIB, 5 * MIB + 4, 32 * MIB, 33 * MIB + 100};
    CUdevice device;
    CUcontext context;
    setvbuf(stdout, NULL, _IOLBF, 0);
    ASK("cuInit", cuInit(0));
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        past_the_end(sizes[i]);
    memory_of_cuMemAlloc();
    one_call_over_many();
    end_of_a_capture();
    without_memory(context); /* the context is lost at its end */
    return 0;
}
