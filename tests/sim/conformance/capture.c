/*
 * Rows 52 to 54: what is allowed during a capture and what ends it, graphs that run again, and main
 * memory that the program registers.
 */
#include "check.h"
#include "kernel.h"
#include "place.h"
#include "step.h"

enum { BLOCK = 2 * MIB, HOST = 4096 };

static CUdeviceptr place, plain; /* two blocks; two of plain memory */
static CUcontext context;
static CUmemGenericAllocationHandle block;
static CUstream captured, mine;

static void set_up(void) {
    check("start", 0, place_start());
    check("  kernels", 0, kernels_load());
    gpu.cuCtxGetCurrent(&context);
    place = place_reserve(2 * BLOCK);
    block = place_block(place, BLOCK);
    gpu.cuMemAlloc_v2(&plain, 2 * BLOCK);
    gpu.cuMemsetD8_v2(plain, 1, 2 * BLOCK);
    gpu.cuMemsetD8_v2(place, 1, BLOCK);
    gpu.cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING);
    check("  a block", 0, gpu.cuCtxSynchronize());
}

static void begin(unsigned flags) {
    gpu.cuStreamCreate(&captured, flags);
    check("capture", 0, gpu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static CUgraph finish(int expected) {
    CUgraph graph = NULL;
    check("  the capture ends with", expected, gpu.cuStreamEndCapture(captured, &graph));
    return graph;
}

/* --- in another thread, RELAXED --- */

static void *run_beside(void *steps) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpu.cuCtxSetCurrent(context);
    check("  beside it, relaxed", 0, gpu.cuThreadExchangeStreamCaptureMode(&mode));
    ((void (*)(void))steps)();
    return NULL;
}

static void during_capture(void (*steps)(void)) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, run_beside, (void *)steps))
        pthread_join(thread, NULL);
}

static void check_work(void) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUevent event;
    CUmodule module;
    check("  load a module", 0,
          gpu.cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.address_size 64\n"));
    check("  a stream", 0, gpu.cuStreamCreateWithPriority(&mine, CU_STREAM_NON_BLOCKING, 0));
    check("  launch in it", 0, kernel_write(mine, plain + BLOCK, 1, 3));
    check("  an event", 0, gpu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    check("  record it", 0, gpu.cuEventRecord(event, mine));
    check("  wait for it", 0, gpu.cuEventSynchronize(event));
    check("  ask the stream", 0, gpu.cuStreamQuery(mine));
    check("  wait for it", 0, gpu.cuStreamSynchronize(mine));
    check("  whether the other one captures", 0, gpu.cuStreamIsCapturing(captured, &status));
    check("    it does", CU_STREAM_CAPTURE_STATUS_ACTIVE, (int64_t)status);
}

static void check_blocks(void) {
    void *pinned;
    check("  read-only", 0, place_allow(place, BLOCK, (CUmemAccess_flags)READ));
    check("  unmap", 0, gpu.cuMemUnmap(place, BLOCK));
    check("  map, access", 0, place_map(place, BLOCK, block));
    check("  a new block", 1, place_block(place + BLOCK, BLOCK) != 0);
    check("  pinned memory", 0, gpu.cuMemHostAlloc(&pinned, HOST, 0));
    check("  a copy there", 0, gpu.cuMemcpyDtoHAsync_v2(pinned, plain + BLOCK, 4, mine));
    check("  wait for it", 0, gpu.cuStreamSynchronize(mine));
    check("    it is there", 3, *(int *)pinned);
}

static void allowed(void) {
    check_work();
    check_blocks();
}

static void ask_captured(void) {
    check("  ask the stream that captures", 900, gpu.cuStreamQuery(captured));
}

static void ask_legacy(void) {
    check("  ask the legacy stream", 906, gpu.cuStreamQuery(CU_STREAM_LEGACY));
}

static void ask_legacy_again(void) {
    check("  ask the legacy stream", 0, gpu.cuStreamQuery(CU_STREAM_LEGACY));
}

static void wait_for_all(void) {
    check("  wait for the context", 900, gpu.cuCtxSynchronize());
}

/* Each spoils the capture, whatever it names. */
static void check_forbidden(const char *name, CUresult result) {
    check(name, 900, result);
    finish(901);
    begin(CU_STREAM_NON_BLOCKING);
}

static void check_frees(void) {
    static _Alignas(HOST) char page[HOST];
    const unsigned off = 0;
    CUdeviceptr none;
    CUipcMemHandle handle;
    begin(CU_STREAM_NON_BLOCKING);
    check_forbidden("  in its own thread: free nothing", gpu.cuMemFree_v2(0));
    check_forbidden("  free what is not there", gpu.cuMemFree_v2(1));
    check_forbidden("  free nothing on another stream", gpu.cuMemFreeAsync(0, mine));
    check_forbidden("  allocate nothing", gpu.cuMemAlloc_v2(&none, 0));
    check_forbidden("  the same on another stream", gpu.cuMemAllocAsync(&none, 0, mine));
    check_forbidden("  pin nothing", gpu.cuMemHostAlloc((void **)&none, 0, 0));
    check_forbidden("  pin memory of its own", gpu.cuMemHostRegister_v2(page, HOST, 0));
    check_forbidden("  SYNC_MEMOPS",
                    gpu.cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, plain));
    check("  a handle", 0, gpu.cuIpcGetMemHandle(&handle, plain));
    gpu.cuGraphDestroy(finish(0));
}

static void free_nothing(void) {
    check("  free nothing", 0, gpu.cuMemFree_v2(0));
}

static void row_52(void) {
    CUmodule module;
    set_up();
    begin(CU_STREAM_DEFAULT);
    during_capture(allowed);
    gpu.cuGraphDestroy(finish(0));
    begin(CU_STREAM_NON_BLOCKING);
    during_capture(ask_captured);
    finish(901);
    begin(CU_STREAM_DEFAULT);
    during_capture(ask_legacy);
    finish(901);
    begin(CU_STREAM_NON_BLOCKING);
    during_capture(ask_legacy_again);
    gpu.cuGraphDestroy(finish(0));
    begin(CU_STREAM_NON_BLOCKING);
    during_capture(wait_for_all);
    finish(901);
    begin(CU_STREAM_NON_BLOCKING);
    during_capture(free_nothing);
    gpu.cuGraphDestroy(finish(0));
    check_frees();
    begin(CU_STREAM_NON_BLOCKING);
    check("  in its own thread: load a module", 0,
          gpu.cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.address_size 64\n"));
    check("  free ordinary memory into it", 1, gpu.cuMemFreeAsync(plain, captured));
    gpu.cuGraphDestroy(finish(0));
    check("  the memory is there", 0, gpu.cuMemsetD8_v2(plain, 1, BLOCK));
}

/* --- graphs --- */

static int64_t byte_of(CUdeviceptr at) {
    unsigned char byte = 0;
    const CUresult result = gpu.cuMemcpyDtoH_v2(&byte, at, 1);
    return result ? -(int64_t)result : byte;
}

static CUgraphExec make_ready(void) {
    CUgraphExec ready = NULL;
    CUgraph graph = finish(0);
    check("  make it ready", 0, gpu.cuGraphInstantiateWithFlags(&ready, graph, 0));
    check("  the graph itself may go", 0, gpu.cuGraphDestroy(graph));
    return ready;
}

static void play(CUgraphExec ready) {
    check("launch the graph", 0, gpu.cuGraphLaunch(ready, mine));
    check("  wait", 0, gpu.cuStreamSynchronize(mine));
}

/* A copy out of the block, an addition, and a copy from memory that nobody has locked. */
static CUgraphExec capture_some(unsigned char *host) {
    begin(CU_STREAM_NON_BLOCKING);
    gpu.cuMemcpyDtoDAsync_v2(plain, place, HOST, captured);
    kernel_add(captured, plain + BLOCK, 1, 1);
    gpu.cuMemcpyHtoDAsync_v2(plain + HOST, host, HOST, captured);
    return make_ready();
}

static void row_53(void) {
    static unsigned char host[HOST];
    CUevent event;
    set_up();
    CUgraphExec ready = capture_some(host);
    check("  nothing has run yet", 1, byte_of(plain + BLOCK));
    memset(host, 7, sizeof host);
    play(ready);
    check("  main memory as it is at the launch", 7, byte_of(plain + HOST));
    check("another block in the place of the old one", 0, gpu.cuMemUnmap(place, BLOCK));
    place_block(place, BLOCK);
    gpu.cuMemsetD8_v2(place, 9, BLOCK);
    play(ready);
    check("  sees its bytes", 9, byte_of(plain));
    check("  has added twice", 3, byte_of(plain + BLOCK));
    check("  let go of it", 0, gpu.cuGraphExecDestroy(ready));
    begin(CU_STREAM_NON_BLOCKING);
    gpu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    check("  record an event", 0, gpu.cuEventRecord(event, captured));
    check("  ask it", 907, gpu.cuEventQuery(event));
    finish(901);
}

/* --- memory of the program's --- */

static void row_54(void) {
    char *own = aligned_alloc(4096, HOST), *pinned = NULL;
    set_up();
    gpu.cuMemHostAlloc((void **)&pinned, HOST, 0);
    check("register memory", 0, gpu.cuMemHostRegister_v2(own, HOST, 0));
    check("  again", 712, gpu.cuMemHostRegister_v2(own, HOST, 0));
    check("  unregister from within", 1, gpu.cuMemHostUnregister(own + 8));
    check("  free it", 1, gpu.cuMemFreeHost(own));
    check("  unregister", 0, gpu.cuMemHostUnregister(own));
    check("  again", 713, gpu.cuMemHostUnregister(own));
    check("register nothing", 1, gpu.cuMemHostRegister_v2(own, 0, 0));
    check("  what is pinned already", 1, gpu.cuMemHostRegister_v2(pinned, HOST, 0));
    free(own);
}

void capture_rows(void) {
    check_in_child("52", row_52);
    check_in_child("53", row_53);
    check_in_child("54", row_54);
}
