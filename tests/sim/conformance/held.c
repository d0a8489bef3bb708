/*
 * Rows 55 to 57: what takes an address for later, of memory that is there, read-only or only
 * reserved; and what is said and done about memory of cuMemAlloc. Each in a process of its own.
 */
#include "check.h"
#include "place.h"
#include "step.h"

enum { BLOCK = 2 * MIB, SOME = 4096 };

/* A block, a read-only one, and an address without one; a plain allocation. */
static CUdeviceptr place, closed, unbacked, plain;
static CUcontext context;
static void *host;

static void set_up(void) {
    check("start", 0, place_start());
    host = calloc(1, SOME);
    gpu.cuCtxGetCurrent(&context);
    place = place_reserve(3 * BLOCK);
    closed = place + BLOCK;
    unbacked = closed + BLOCK;
    place_block(place, BLOCK);
    place_block(closed, BLOCK);
    gpu.cuMemAlloc_v2(&plain, 2 * BLOCK);
    check("  a read-only block", 0, place_allow(closed, BLOCK, (CUmemAccess_flags)READ));
    check("  all of it is there", 0, host ? (int)gpu.cuCtxSynchronize() : -1);
}

/* --- nodes of a graph --- */

static CUDA_MEMCPY3D copy_to(CUdeviceptr at) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = at,
                           .WidthInBytes = SOME,
                           .Height = 1,
                           .Depth = 1};
}

static CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr at) {
    return (CUDA_MEMSET_NODE_PARAMS){.dst = at, .elementSize = 1, .width = SOME, .height = 1};
}

struct nodes {
    CUgraph graph;
    CUgraphNode copy, fill;
    CUgraphExec made;
};

static void add_to(const struct nodes *nodes, const char *what, int expected, CUdeviceptr at) {
    const CUDA_MEMCPY3D copy = copy_to(at);
    const CUDA_MEMSET_NODE_PARAMS fill = fill_of(at);
    CUgraphNode node;
    check(what, expected, gpu.cuGraphAddMemcpyNode(&node, nodes->graph, NULL, 0, &copy, context));
    check("  a memset node", expected,
          gpu.cuGraphAddMemsetNode(&node, nodes->graph, NULL, 0, &fill, context));
}

static void set_to(const struct nodes *nodes, int expected, CUdeviceptr at) {
    const CUDA_MEMCPY3D copy = copy_to(at);
    const CUDA_MEMSET_NODE_PARAMS fill = fill_of(at);
    check("  new parameters for a node", expected,
          gpu.cuGraphMemcpyNodeSetParams(nodes->copy, &copy));
    check("  for an instance's memcpy node", expected,
          gpu.cuGraphExecMemcpyNodeSetParams(nodes->made, nodes->copy, &copy, context));
    check("  for an instance's memset node", expected,
          gpu.cuGraphExecMemsetNodeSetParams(nodes->made, nodes->fill, &fill, context));
}

static void row_55(void) {
    struct nodes nodes;
    CUgraphNode none;
    set_up();
    const CUDA_MEMCPY3D copy = copy_to(plain);
    const CUDA_MEMSET_NODE_PARAMS fill = fill_of(plain);
    check("a graph", 0, gpu.cuGraphCreate(&nodes.graph, 0));
    check("  a memcpy node", 0,
          gpu.cuGraphAddMemcpyNode(&nodes.copy, nodes.graph, NULL, 0, &copy, context));
    check("  a memset node", 0,
          gpu.cuGraphAddMemsetNode(&nodes.fill, nodes.graph, NULL, 0, &fill, context));
    check("  ready", 0, gpu.cuGraphInstantiateWithFlags(&nodes.made, nodes.graph, 0));
    const CUDA_MEMSET_NODE_PARAMS nothing = {.dst = plain, .elementSize = 1, .height = 1};
    check("  a memset node of no width", 1,
          gpu.cuGraphAddMemsetNode(&none, nodes.graph, NULL, 0, &nothing, context));
    add_to(&nodes, "ordinary memory: a memcpy node", 0, plain + BLOCK);
    add_to(&nodes, "a block: a memcpy node", 0, place);
    add_to(&nodes, "reserved, without memory: a memcpy node", 1, unbacked);
    set_to(&nodes, 1, unbacked);
    add_to(&nodes, "read-only: a memcpy node", 1, closed);
    check("the graph runs", 0, gpu.cuGraphLaunch(nodes.made, NULL));
    check("  and ends", 0, gpu.cuCtxSynchronize());
}

/* --- a word --- */

static void row_56(void) {
    uint32_t word = 0;
    set_up();
    check("write a word", 0, gpu.cuStreamWriteValue32_v2(NULL, plain, 7, 0));
    check("  wait for it", 0, gpu.cuCtxSynchronize());
    check("  read it", 0, gpu.cuMemcpyDtoH_v2(&word, plain, sizeof word));
    check("  as written", 7, word);
    check("reserved, without memory", 1, gpu.cuStreamWriteValue32_v2(NULL, unbacked, 7, 0));
    check("  the context lives", 0, gpu.cuCtxSynchronize());
    check("read-only", 0, gpu.cuStreamWriteValue32_v2(NULL, closed, 7, 0));
    check("  its turn", 719, gpu.cuCtxSynchronize());
}

/* --- memory of cuMemAlloc --- */

/* Whether it was told, and what, or minus the code. */
static int64_t told(CUpointer_attribute which, CUdeviceptr at) {
    uint64_t value[8] = {0};
    const CUresult result = gpu.cuPointerGetAttribute(value, which, at);
    return result ? -(int64_t)result : (int64_t)value[0];
}

static void check_attributes(void) {
    check("attributes: its context", 1,
          told(CU_POINTER_ATTRIBUTE_CONTEXT, plain) == (int64_t)(intptr_t)context);
    check("  allowed handle types", 0, told(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, plain));
    check("  pool", 0, told(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain));
    check("  capable", 1, told(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, plain));
    check("  id of its memory block", 1, told(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, plain) > 0);
}

static void check_calls_for_blocks(void) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemGenericAllocationHandle handle;
    unsigned long long flags = 77;
    check("retain its handle", 1,
          gpu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)plain));
    check("  unmap", 1, gpu.cuMemUnmap(plain, 2 * BLOCK));
    check("  set access", 1, gpu.cuMemSetAccess(plain, 2 * BLOCK, &access, 1));
    check("  free the address", 1, gpu.cuMemAddressFree(plain, 2 * BLOCK));
    check("  access", 0, gpu.cuMemGetAccess(&flags, &access.location, plain));
    check("  is none", 0, (int64_t)flags);
    check("  prefetch", 1, gpu.cuMemPrefetchAsync_v2(plain, SOME, access.location, 0, NULL));
    check("  advise", 1,
          gpu.cuMemAdvise_v2(plain, SOME, CU_MEM_ADVISE_SET_READ_MOSTLY, access.location));
}

static void check_held(const char *what, int expected, CUdeviceptr at) {
    const unsigned on = 1;
    int descriptor = -1;
    const CUresult result = gpu.cuMemGetHandleForAddressRange(
        &descriptor, at, BLOCK, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    check(what, expected, result);
    if (!result)
        close(descriptor);
    check("  SYNC_MEMOPS", expected,
          gpu.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at));
}

static void check_synced(const char *what, unsigned expected) {
    unsigned seen[2] = {77, 77};
    check(what, 0, gpu.cuPointerGetAttribute(seen, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain));
    check("  is", expected, seen[0]);
    check("  no more is written", 77, seen[1]);
}

static void check_tokens(void) {
    const unsigned no[2] = {0, 1};
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    check("SYNC_MEMOPS is taken back", 0,
          gpu.cuPointerSetAttribute(no, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain));
    check_synced("  SYNC_MEMOPS then", 0);
    check("  P2P_TOKENS", 0,
          gpu.cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, plain));
    check_synced("  SYNC_MEMOPS then", 1);
}

static void row_57(void) {
    set_up();
    check_attributes();
    check_calls_for_blocks();
    check_held("a dma-buf of it", 0, plain);
    check_tokens();
    check_held("reserved, without memory: a dma-buf", 1, unbacked);
    check("  unmap", 0, gpu.cuMemUnmap(unbacked, BLOCK));
    check("  the context lives", 0, gpu.cuCtxSynchronize());
}

void held_rows(void) {
    check_in_child("55", row_55);
    check_in_child("56", row_56);
    check_in_child("57", row_57);
}
