/*
 * Rows 48 to 51: kernels, what waits for them, what ends them, and what is left of a context then.
 * Each in a process of its own.
 */
#include "check.h"
#include "kernel.h"
#include "place.h"
#include "step.h"

enum { BLOCK = 32 * MIB, WORDS = BLOCK / 4 };

/* Two blocks, behind them an address without one, a plain allocation; all of it 1. */
static CUdeviceptr a, b, unbacked, plain;
static CUmemGenericAllocationHandle block_a;
static CUstream s, other;
static void *pinned;

static void set_up(void) {
    check("start", 0, place_start());
    check("  kernels", 0, kernels_load());
    a = place_reserve(3 * BLOCK);
    b = a + BLOCK;
    unbacked = b + BLOCK;
    block_a = place_block(a, BLOCK);
    place_block(b, BLOCK);
    gpu.cuMemAlloc_v2(&plain, BLOCK);
    gpu.cuMemHostAlloc(&pinned, BLOCK, 0);
    gpu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    gpu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING);
    gpu.cuMemsetD8_v2(a, 1, 2 * BLOCK);
    gpu.cuMemsetD8_v2(plain, 1, BLOCK);
    check("  two blocks", 0, gpu.cuCtxSynchronize());
}

static int64_t word_at(CUdeviceptr at) {
    uint32_t word = 0;
    const CUresult result = gpu.cuMemcpyDtoH_v2(&word, at, sizeof word);
    return result ? -(int64_t)result : word;
}

static int64_t allow(CUdeviceptr at, unsigned access) {
    return place_allow(at, BLOCK, (CUmemAccess_flags)access);
}

static void check_stream(const char *what, CUstream stream, int expected) {
    check(what, expected, gpu.cuStreamQuery(stream));
}

/* A kernel that reads a is under way when this returns. */
static void spin_on(CUdeviceptr touch) {
    check("a kernel reads", 0, kernel_spin(s, touch, touch ? WORDS : 0));
    check_stream("  its stream", s, 600);
}

static void row_48(void) {
    CUmodule module;
    CUfunction function;
    set_up();
    check("write", 0, kernel_write(s, a, WORDS, 5));
    check("  add", 0, kernel_add(s, a + 4, WORDS - 1, 2));
    check("  add up", 0, kernel_write(s, plain, 1, 0) + kernel_read(s, a, WORDS, plain));
    check("  done", 0, gpu.cuStreamSynchronize(s));
    check("  the first word", 5, word_at(a));
    check("  the last", 7, word_at(a + BLOCK - 4));
    check("  the sum", 5 + 7 * (WORDS - 1), word_at(plain));
    check("text that is no PTX", 200, gpu.cuModuleLoadData(&module, "garbage"));
    check("PTX without functions", 0,
          gpu.cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.address_size 64\n"));
    check("  one of its functions", 500, gpu.cuModuleGetFunction(&function, module, "nobody"));
    check("  unload", 0, gpu.cuModuleUnload(module));
    spin_on(0);
    check("a module is loaded beside it", 0, kernels_module(&module));
    check_stream("  and waits for it", s, 0);
    check("  unload", 0, gpu.cuModuleUnload(module));
}

static void free_behind(const char *what, CUstream stream) {
    CUdeviceptr freed;
    check("an allocation", 0, gpu.cuMemAlloc_v2(&freed, BLOCK));
    spin_on(0);
    check(what, 0, gpu.cuMemFreeAsync(freed, stream));
    check_stream("  does not wait for the kernel", s, 600);
    check("  and in its turn", 0, gpu.cuStreamSynchronize(stream));
    check("  it is free", 1, gpu.cuMemFree_v2(freed));
    check("  and the kernel ends", 0, gpu.cuStreamSynchronize(s));
}

static void row_49(void) {
    set_up();
    spin_on(a);
    check_stream("  another one", other, 0);
    check_stream("  the default one", NULL, 0);
    check("  the other block: unmap", 0, gpu.cuMemUnmap(b, BLOCK));
    place_block(b, BLOCK);
    check("  read-only", 0, allow(b, READ));
    check_stream("  nothing of it waited", s, 600);
    check("  free of something else", 0, gpu.cuMemFree_v2(plain));
    check_stream("  that waited", s, 0);
    check("one behind another kernel", 0, kernel_spin(s, 0, 0) + kernel_read(s, b, WORDS, a));
    check("  its block is swapped meanwhile", 0, gpu.cuMemUnmap(b, BLOCK));
    place_block(b, BLOCK);
    check("  both are fine", 0, gpu.cuStreamSynchronize(s));
    free_behind("  free it in the kernel's stream", s);
    free_behind("  free it in another stream", other);
    spin_on(0);
    check("  its stream is destroyed", 0, gpu.cuStreamDestroy_v2(s));
    check("  it goes on, until all is waited for", 0, gpu.cuCtxSynchronize());
}

/* --- each in a context of its own --- */

static void unmapped_under_a_kernel(void) {
    set_up();
    spin_on(a);
    check("  the block: unmap", 0, gpu.cuMemUnmap(a, BLOCK));
    check("  the kernel", 700, gpu.cuStreamSynchronize(s));
}

/* What becomes of the kernel differs. */
static void closed_under_a_kernel(void) {
    set_up();
    spin_on(a);
    check("  the block: read-only", 0, allow(a, READ));
    check("  did not wait", 1, gpu.cuStreamQuery(s) != CUDA_SUCCESS);
}

static void written_read_only(void) {
    set_up();
    check("a read-only block", 0, allow(a, READ));
    check("  a kernel reads it", 0, kernel_read(s, a, WORDS, plain));
    check("  which it may", 0, gpu.cuStreamSynchronize(s));
    check("  another one writes it", 0, kernel_write(s, a, 1, 1));
    check("  which it may not", 700, gpu.cuStreamSynchronize(s));
}

static void nothing_there(void) {
    set_up();
    check("a kernel reads an unbacked address", 0, kernel_read(s, unbacked, 1, plain));
    check("  which it may not", 700, gpu.cuStreamSynchronize(s));
}

static void copies_from_read_only(void) {
    set_up();
    spin_on(0);
    check("  behind it a copy from a block", 0, gpu.cuMemcpyDtoHAsync_v2(pinned, a, BLOCK, s));
    check("  that becomes read-only", 0, allow(a, READ));
    check("  both are fine", 0, gpu.cuStreamSynchronize(s));
}

static void copies_into_read_only(void) {
    set_up();
    spin_on(0);
    check("  behind it a copy into a block", 0, gpu.cuMemcpyHtoDAsync_v2(a, pinned, BLOCK, s));
    check("  that becomes read-only", 0, allow(a, READ));
    check("  the copy", 719, gpu.cuStreamSynchronize(s));
}

static void memset_of_read_only(void) {
    set_up();
    spin_on(0);
    check("  behind it a memset of a block", 0, gpu.cuMemsetD8Async(a, 2, BLOCK, s));
    check("  that becomes read-only", 0, allow(a, READ));
    check("  the memset", 700, gpu.cuStreamSynchronize(s));
}

static void copies_into_unmapped(void) {
    set_up();
    spin_on(0);
    check("  behind it a copy into a block", 0, gpu.cuMemcpyHtoDAsync_v2(a, pinned, BLOCK, s));
    check("  that is unmapped", 0, gpu.cuMemUnmap(a, BLOCK));
    check("  the copy", 719, gpu.cuStreamSynchronize(s));
}

/* --- what is left --- */

static void check_vmm_goes_on(void) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle block;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    check("VMM: access", 0, allow(b, READ));
    check("  create", 0, gpu.cuMemCreate(&block, BLOCK, &wanted, 0));
    check("  map", 0, gpu.cuMemMap(unbacked, BLOCK, 0, block, 0));
    check("  unmap", 0, gpu.cuMemUnmap(unbacked, BLOCK));
    check("  release", 0, gpu.cuMemRelease(block));
}

static void check_context_is_lost(void) {
    CUdeviceptr base;
    CUevent event;
    CUmodule module;
    void *host;
    size_t size;
    int type;
    check("wait for all", 700, gpu.cuCtxSynchronize());
    check("allocate", 700, gpu.cuMemAlloc_v2(&base, 4096));
    check("  free", 700, gpu.cuMemFree_v2(plain));
    check("  pinned", 700, gpu.cuMemHostAlloc(&host, 4096, 0));
    check("  how much is free", 700, gpu.cuMemGetInfo_v2(&size, &size));
    check("range", 700, gpu.cuMemGetAddressRange_v2(&base, &size, plain));
    check("  attribute", 0,
          gpu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain));
    check("another stream", 700, gpu.cuStreamQuery(other));
    check("  a new one", 700, gpu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    check("  destroy it", 700, gpu.cuStreamDestroy_v2(s));
    check("an event", 700, gpu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    check("a module", 700, gpu.cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n"));
}

static void check_process_is_lost(void) {
    CUcontext context;
    CUdeviceptr base;
    check("reset", 0, gpu.cuDevicePrimaryCtxReset_v2(0));
    check("  retain", 700, gpu.cuDevicePrimaryCtxRetain(&context, 0));
    check("  allocate", 709, gpu.cuMemAlloc_v2(&base, 4096));
    check("  create another", 700, gpu.cuCtxCreate_v4(&context, NULL, 0, 0));
}

static void row_51(void) {
    set_up();
    check("a kernel writes an unbacked address", 0, kernel_write(s, unbacked, 1, 1));
    check("  which it may not", 700, gpu.cuStreamSynchronize(s));
    check_context_is_lost();
    check_vmm_goes_on();
    check_process_is_lost();
}

void hazard_rows(void) {
    check_in_child("48", row_48);
    check_in_child("49", row_49);
    void (*const hazards[])(void) = {
        unmapped_under_a_kernel, closed_under_a_kernel, written_read_only,   nothing_there,
        copies_from_read_only,   copies_into_read_only, memset_of_read_only, copies_into_unmapped,
    };
    for (size_t i = 0; i < sizeof hazards / sizeof *hazards; i++)
        check_in_child("50", hazards[i]);
    check_in_child("51", row_51);
}
