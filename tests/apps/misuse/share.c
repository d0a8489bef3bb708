/*
 * rules.c - programs that a configuration joins, share.conf beside this file. They misuse nothing
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

const struct scenario share_scenarios[] = {
    {"share-mismatch", first, share_mismatch_importer, false},
    {"share-timeout", share_timeout_exporter, share_timeout_importer, false},
    {"share-fallback", first, share_fallback_second, false},
    {"write-read-only", table, write_read_only_importer, false},
    {0}};
