/*
 * copy.c - memory that is copied from, or filled, after it has gone; and host memory that copies
 * use.
 */
#include "misuse.h"

/* --- use-after-free: the loop that reads results runs once too often --- */

static void use_after_free(void) {
    char byte = 0;
    void *p = allocate(0x51);
    if (right())
        CHECK(cudaSuccess, cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost));
    MUST(cudaFree(p));
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost));
}

/* --- copy-outside: one row too many, and one that begins there --- */

static void copy_outside(void) {
    static char bytes[BLOCK + 512];
    void *p = allocate(0x53);
    if (right())
        CHECK(cudaSuccess, cudaMemcpy(p, bytes, BLOCK, cudaMemcpyHostToDevice));
    else
        CHECK(cudaErrorInvalidValue, cudaMemcpy(p, bytes, BLOCK + 512, cudaMemcpyHostToDevice));
    MUST(cudaFree(p));
}

static void copy_outside_begin(void) {
    char byte = 0, *p = allocate(0x54);
    if (!right())
        CHECK(cudaErrorInvalidValue, CU(cuMemcpyDtoH_v2)(&byte, (CUdeviceptr)(p + BLOCK + 64), 1));
    CHECK(CUDA_SUCCESS, CU(cuMemcpyDtoH_v2)(&byte, (CUdeviceptr)p, 1));
    MUST(cudaFree(p));
}

/* --- use-after-close: by a fill, and somewhere inside --- */

static void use_after_close_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaMemset(inside(q), 0, 1));
    MUST(cudaIpcCloseMemHandle(q));
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaMemset(inside(q), 0, 1));
    tell();
}

/* --- use-after-close-kernel: the kernel of the next frame --- */

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry test_write(.param .u64 to, .param .u64 words, "
                           ".param .u32 value)\n{\n"
                           ".reg .b64 %r;\n.reg .b32 %v;\n"
                           "ld.param.u64 %r, [to];\nld.param.u32 %v, [value];\n"
                           "cvta.to.global.u64 %r, %r;\nst.global.u32 [%r], %v;\nret;\n}\n";

static int write_word(void *to) {
    CUmodule module;
    CUfunction function;
    uint64_t words = 1;
    uint32_t value = 7;
    void *values[] = {&to, &words, &value};
    MUST(CU(cuModuleLoadData)(&module, text));
    MUST(CU(cuModuleGetFunction)(&function, module, "test_write"));
    CHECK(CUDA_SUCCESS, CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL));
    return (int)CU(cuCtxSynchronize)();
}

static void use_after_close_kernel_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(CUDA_SUCCESS, write_word(inside(q)));
    MUST(cudaIpcCloseMemHandle(q));
    if (!right())
        CHECK(CUDA_ERROR_ILLEGAL_ADDRESS, write_word(inside(q)));
    tell();
}

/* --- free-host: one function frees all buffers --- */

static void free_host(void) {
    void *p = NULL;
    MUST(cudaMallocHost(&p, BLOCK));
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaFree(p));
    CHECK(cudaSuccess, cudaFreeHost(p));
}

const struct scenario copy_scenarios[] = {
    {"free-host", free_host, NULL, false},
    {"use-after-free", use_after_free, NULL, false},
    {"copy-outside", copy_outside, NULL, false},
    {"copy-outside-begin", copy_outside_begin, NULL, false},
    {"use-after-close", owner, use_after_close_importer, false},
    {"use-after-close-kernel", owner, use_after_close_kernel_importer, false},
    {0}};
