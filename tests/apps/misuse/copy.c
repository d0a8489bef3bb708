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

/* --- use-after-close: by a fill, and somewhere inside --- */

static void owner(void) {
    void *p = allocate(0x52);
    send_export(p);
    wait_for_peer();
    MUST(cudaFree(p));
}

static void use_after_close_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaMemset(inside(q), 0, 1));
    MUST(cudaIpcCloseMemHandle(q));
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaMemset(inside(q), 0, 1));
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
    {"use-after-close", owner, use_after_close_importer, false},
    {0}};
