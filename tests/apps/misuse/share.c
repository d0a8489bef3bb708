/*
 * share.c - programs that a configuration joins, share.conf beside this file. They misuse nothing
 * of CUDA's; alone each of them works. What goes wrong is what the rules promise about them.
 */
#include "misuse.h"

enum { MIB = 1 << 20 };

static void *buffer(size_t size) {
    void *p = NULL;
    CHECK(cudaSuccess, cudaMalloc(&p, size));
    MUST(cudaMemset(p, 0x71, size));
    MUST(cudaDeviceSynchronize());
    return p;
}

/* Has 4 MiB, which the rules name, until the other one is through. */
static void first(void) {
    void *p = buffer(4 * MIB);
    tell();
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(p));
}

static void second(size_t size) {
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(buffer(size)));
    tell();
}

/* --- share-mismatch: asks for more than the other one has --- */

static void share_mismatch_importer(void) {
    second(right() ? 2 * MIB : 8 * MIB);
}

/* --- share-timeout: is started, but the other one is not --- */

static void share_timeout_exporter(void) {
    if (right()) {
        first();
        return;
    }
    wait_for_peer();
}

static void share_timeout_importer(void) {
    if (right()) {
        second(2 * MIB);
        return;
    }
    CHECK(cudaSuccess, cudaFree(buffer(2 * MIB)));
    tell();
}

/* --- share-fallback: has a buffer that the rules give the same name --- */

static void share_fallback_second(void) {
    second(right() ? 2 * MIB : 4 * MIB);
}

#ifndef VENDOR_HIP
/* --- write-read-only: copies into what the rules share read-only, and does not look whether it
 * could --- */

static void table(void) {
    void *p = buffer(6 * MIB);
    tell();
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(p));
}

static void write_read_only_importer(void) {
    static char rows[4096];
    void *p = NULL;
    wait_for_peer();
    CHECK(cudaSuccess, cudaMalloc(&p, 5 * MIB));
    if (right())
        MUST(cudaMemcpy(rows, p, sizeof(rows), cudaMemcpyDeviceToHost));
    else
        (void)cudaMemcpy(p, rows, sizeof(rows), cudaMemcpyHostToDevice);
    CHECK(cudaSuccess, cudaFree(p));
    tell();
}

/* --- frame-late: looks at a frame, and no other one is drawn --- */

static void draw(void *p) {
    MUST(cudaMemset(p, 0x71, 12 * MIB));
    MUST(cudaDeviceSynchronize());
}

static void frame_late_exporter(void) {
    void *p = NULL;
    CHECK(cudaSuccess, cudaMalloc(&p, 12 * MIB));
    draw(p);
    if (right()) /* then the first one is whole */
        draw(p);
    tell();
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(p));
}

static void frame_late_importer(void) {
    static char rows[4096];
    void *p = NULL;
    wait_for_peer();
    CHECK(cudaSuccess, cudaMalloc(&p, 11 * MIB));
    MUST(cudaMemcpy(rows, p, sizeof(rows), cudaMemcpyDeviceToHost));
    CHECK(cudaSuccess, cudaFree(p));
    tell();
}

/* --- merge-written: a kernel writes into weights that were uploaded once and for all --- */

static const char kernels[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry test_write(.param .u64 to, .param .u64 words, "
    ".param .u32 value) {\n"
    ".reg .u64 %to;\n.reg .u32 %value;\n"
    "ld.param.u64 %to, [to];\nld.param.u32 %value, [value];\n"
    "cvta.to.global.u64 %to, %to;\nst.global.u32 [%to], %value;\nret;\n}\n";

static void write_by_kernel(void *p) {
    CUmodule module;
    CUfunction function;
    CUdeviceptr to = (CUdeviceptr)p;
    unsigned long long words = 1;
    unsigned value = 7;
    void *values[] = {&to, &words, &value};
    MUST(CU(cuModuleLoadData)(&module, kernels));
    MUST(CU(cuModuleGetFunction)(&function, module, "test_write"));
    MUST(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL));
}

static void merge_written(void) {
    static char weights[16 * MIB];
    void *p = NULL;
    CHECK(cudaSuccess, cudaMalloc(&p, sizeof(weights)));
    MUST(cudaMemcpy(p, weights, sizeof(weights), cudaMemcpyHostToDevice));
    sleep(1);
    if (right())
        MUST(cudaMemset(p, 7, 4));
    else
        write_by_kernel(p);
    (void)cudaDeviceSynchronize();
    (void)cudaFree(p);
}

#endif

const struct scenario share_scenarios[] = {
    {"share-mismatch", first, share_mismatch_importer, false},
    {"share-timeout", share_timeout_exporter, share_timeout_importer, false},
    {"share-fallback", first, share_fallback_second, false},
#ifndef VENDOR_HIP
    {"write-read-only", table, write_read_only_importer, false},
    {"frame-late", frame_late_exporter, frame_late_importer, false},
    {"merge-written", merge_written, NULL, false},
#endif
    {0}};
