/*
 * ends.c - what the driver answers to copies and fills of which one end reaches past its
 * allocation. Of the driver API alone; a row a call and an end.
 *
 * usage: ends   a row each on standard output: FUNCTION, the end, the code where it ends with the
 *               allocation, the code where it ends a byte behind, "touched" if that wrote a byte
 *
 * The allocation has 1.5 MiB, no whole pages of the card. Behind it lies what nobody may read.
 */
#include "must.h"

enum { SIZE = 3 << 19, WIDTH = 1000, PITCH = 1024, HEIGHT = 4, LAYERS = 2, RANGE = 4096 };

static CUdeviceptr whole, other;
static unsigned char *host;
static CUstream stream;
static CUcontext context;
static CUgraph graph;

/* One call: where it writes, where it reads, and how many bytes of a range. */
struct ends {
    CUdeviceptr to, from;
    size_t bytes;
};

static CUDA_MEMCPY2D rows_of(struct ends ends) {
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = ends.from,
                           .srcPitch = PITCH,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = ends.to,
                           .dstPitch = PITCH,
                           .WidthInBytes = WIDTH,
                           .Height = HEIGHT};
}

static CUDA_MEMCPY3D box_of(struct ends ends, size_t layers) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = ends.from,
                           .srcPitch = PITCH,
                           .srcHeight = HEIGHT,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = ends.to,
                           .dstPitch = PITCH,
                           .dstHeight = HEIGHT,
                           .WidthInBytes = WIDTH,
                           .Height = HEIGHT,
                           .Depth = layers};
}

static CUDA_MEMCPY3D line_of(struct ends ends) {
    CUDA_MEMCPY3D box = box_of(ends, 1);
    box.WidthInBytes = ends.bytes;
    box.srcPitch = box.dstPitch = 0;
    box.Height = box.srcHeight = box.dstHeight = 1;
    return box;
}

static CUDA_MEMCPY3D_PEER peers_of(struct ends ends) {
    const CUDA_MEMCPY3D box = box_of(ends, LAYERS);
    return (CUDA_MEMCPY3D_PEER){.srcMemoryType = box.srcMemoryType,
                                .srcDevice = box.srcDevice,
                                .srcContext = context,
                                .srcPitch = box.srcPitch,
                                .srcHeight = box.srcHeight,
                                .dstMemoryType = box.dstMemoryType,
                                .dstDevice = box.dstDevice,
                                .dstContext = context,
                                .dstPitch = box.dstPitch,
                                .dstHeight = box.dstHeight,
                                .WidthInBytes = WIDTH,
                                .Height = HEIGHT,
                                .Depth = LAYERS};
}

static CUDA_MEMSET_NODE_PARAMS fill_of(struct ends ends) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = ends.to, .elementSize = 1, .value = 1, .width = ends.bytes, .height = 1};
}

/* Which ends it has, and how many bytes lie between its first and its last one. */
enum { TO = 1, FROM = 2 };
#define LINE  RANGE
#define ROWS  ((HEIGHT - 1) * PITCH + WIDTH)
#define BOXES ((LAYERS * HEIGHT - 1) * PITCH + WIDTH)

/* What a row calls. */
#define CALLS(CALL, WITH)                                                                          \
    CALL(cuMemcpyHtoD, TO, LINE, cuMemcpyHtoD(e.to, host, e.bytes))                                \
    CALL(cuMemcpyHtoDAsync, TO, LINE, cuMemcpyHtoDAsync(e.to, host, e.bytes, stream))              \
    CALL(cuMemcpyDtoH, FROM, LINE, cuMemcpyDtoH(host, e.from, e.bytes))                            \
    CALL(cuMemcpyDtoHAsync, FROM, LINE, cuMemcpyDtoHAsync(host, e.from, e.bytes, stream))          \
    CALL(cuMemcpyDtoD, TO | FROM, LINE, cuMemcpyDtoD(e.to, e.from, e.bytes))                       \
    CALL(cuMemcpyDtoDAsync, TO | FROM, LINE, cuMemcpyDtoDAsync(e.to, e.from, e.bytes, stream))     \
    CALL(cuMemcpy, TO | FROM, LINE, cuMemcpy(e.to, e.from, e.bytes))                               \
    CALL(cuMemcpyAsync, TO | FROM, LINE, cuMemcpyAsync(e.to, e.from, e.bytes, stream))             \
    CALL(cuMemcpyPeer, TO | FROM, LINE, cuMemcpyPeer(e.to, context, e.from, context, e.bytes))     \
    CALL(cuMemcpyPeerAsync, TO | FROM, LINE,                                                       \
         cuMemcpyPeerAsync(e.to, context, e.from, context, e.bytes, stream))                       \
    CALL(cuMemsetD8, TO, LINE, cuMemsetD8(e.to, 1, e.bytes))                                       \
    CALL(cuMemsetD8Async, TO, LINE, cuMemsetD8Async(e.to, 1, e.bytes, stream))                     \
    CALL(cuMemsetD2D8, TO, ROWS, cuMemsetD2D8(e.to, PITCH, 1, WIDTH, HEIGHT))                      \
    CALL(cuMemsetD2D8Async, TO, ROWS, cuMemsetD2D8Async(e.to, PITCH, 1, WIDTH, HEIGHT, stream))    \
    WITH(cuMemcpy2D, TO | FROM, ROWS, CUDA_MEMCPY2D, rows_of(e), cuMemcpy2D(&plan))                \
    WITH(cuMemcpy2DUnaligned, TO | FROM, ROWS, CUDA_MEMCPY2D, rows_of(e),                          \
         cuMemcpy2DUnaligned(&plan))                                                               \
    WITH(cuMemcpy2DAsync, TO | FROM, ROWS, CUDA_MEMCPY2D, rows_of(e),                              \
         cuMemcpy2DAsync(&plan, stream))                                                           \
    WITH(cuMemcpy3D, TO | FROM, BOXES, CUDA_MEMCPY3D, box_of(e, LAYERS), cuMemcpy3D(&plan))        \
    WITH(cuMemcpy3DAsync, TO | FROM, BOXES, CUDA_MEMCPY3D, box_of(e, LAYERS),                      \
         cuMemcpy3DAsync(&plan, stream))                                                           \
    WITH(cuMemcpy3DPeer, TO | FROM, BOXES, CUDA_MEMCPY3D_PEER, peers_of(e), cuMemcpy3DPeer(&plan)) \
    WITH(cuMemcpy3DPeerAsync, TO | FROM, BOXES, CUDA_MEMCPY3D_PEER, peers_of(e),                   \
         cuMemcpy3DPeerAsync(&plan, stream))                                                       \
    WITH(cuGraphAddMemcpyNode, TO | FROM, LINE, CUDA_MEMCPY3D, line_of(e),                         \
         cuGraphAddMemcpyNode(&node, graph, NULL, 0, &plan, context))                              \
    WITH(cuGraphAddMemsetNode, TO, LINE, CUDA_MEMSET_NODE_PARAMS, fill_of(e),                      \
         cuGraphAddMemsetNode(&node, graph, NULL, 0, &plan, context))

#define CALL_FUNCTION(name, sides, span, call)                                                     \
    static CUresult call_##name(struct ends e) {                                                   \
        return call;                                                                               \
    }
#define WITH_FUNCTION(name, sides, span, type, of, call)                                           \
    static CUresult call_##name(struct ends e) {                                                   \
        const type plan = of;                                                                      \
        CUgraphNode node;                                                                          \
        (void)node;                                                                                \
        return call;                                                                               \
    }
CALLS(CALL_FUNCTION, WITH_FUNCTION)

#define ROW(name, sides, span, ...) {#name, call_##name, sides, span},
static const struct row {
    const char *name;
    CUresult (*call)(struct ends ends);
    int ends;
    size_t span;
} rows[] = {CALLS(ROW, ROW)};

/* All bytes that a call may write are 0x5a before it, and those that it reads 0xa5. */
static bool is_touched(CUdeviceptr first, size_t size) {
    MUST(cuMemcpyDtoH(host, first, size));
    for (size_t i = 0; i < size; i++)
        if (host[i] != 0x5a)
            return true;
    return false;
}

static void ask(const struct row *row, int end) {
    const CUdeviceptr last = whole + SIZE - row->span;
    const bool writes = end == TO;
    struct ends ends = {writes ? last : other, writes ? other : last, RANGE};
    const CUresult within = row->call(ends);
    MUST(cuCtxSynchronize());
    MUST(cuMemsetD8(whole, writes ? 0x5a : 0xa5, SIZE));
    MUST(cuMemsetD8(other, writes ? 0xa5 : 0x5a, SIZE));
    memset(host, writes ? 0xa5 : 0x5a, SIZE);
    *(writes ? &ends.to : &ends.from) = last + 1;
    const CUresult behind = row->call(ends);
    MUST(cuCtxSynchronize());
    bool touched = false;
    for (size_t i = 0; i < row->span && !writes; i++)
        touched |= host[i] != 0x5a;
    touched |= is_touched(writes ? last : other, row->span);
    printf("%s\t%s\t%d\t%d%s\n", row->name, writes ? "destination" : "source", (int)within,
           (int)behind, touched ? " touched" : "");
}

int main(void) {
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuMemAlloc(&whole, SIZE));
    MUST(cuMemAlloc(&other, SIZE));
    host = malloc(SIZE);
    if (!host)
        return 3;
    MUST(cuMemsetD8(whole, 0, SIZE));
    MUST(cuMemsetD8(other, 0, SIZE));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int end = TO; end <= FROM; end++)
            if (rows[i].ends & end)
                ask(&rows[i], end);
    return 0;
}
