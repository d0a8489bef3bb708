/*
 * export.c - handles of memory that cannot have one, or whose handle means more than it seems.
 */
#include "misuse.h"

/* --- export-not-capable: pool, managed and pinned memory have sharing of their own --- */

static void export_it(void *p) {
    cudaIpcMemHandle_t handle;
    CHECK(right() ? cudaSuccess : cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, p));
}

static void as_it_should_be(void) {
    void *p = allocate(0x51);
    export_it(p);
    CHECK(cudaSuccess, cudaFree(p));
}

static void export_pool(void) {
    void *p = NULL;
    if (right()) {
        as_it_should_be();
        return;
    }
    MUST(cudaMallocAsync(&p, BLOCK, NULL));
    MUST(cudaDeviceSynchronize());
    export_it(p);
    MUST(cudaFreeAsync(p, NULL));
    MUST(cudaDeviceSynchronize());
}

static void export_managed(void) {
    void *p = NULL;
    if (right()) {
        as_it_should_be();
        return;
    }
    MUST(cudaMallocManaged(&p, BLOCK, cudaMemAttachGlobal));
    export_it(p);
    MUST(cudaFree(p));
}

static void export_host(void) {
    void *p = NULL;
    if (right()) {
        as_it_should_be();
        return;
    }
    MUST(cudaMallocHost(&p, BLOCK));
    export_it(p);
    MUST(cudaFreeHost(p));
}

/* --- export-interior: of the second half; what the importer gets is the beginning --- */

static void export_interior_exporter(void) {
    unsigned char *p = allocate(0x52);
    unsigned char *wanted = p + BLOCK / 2;
    MUST(cudaMemset(wanted, 0x53, BLOCK / 2));
    MUST(cudaDeviceSynchronize());
    send_export(right() ? p : wanted);
    wait_for_peer();
    MUST(cudaFree(p));
}

static void export_interior_importer(void) {
    unsigned char *q = open_received();
    check_byte(q + (right() ? BLOCK / 2 : 0), right() ? 0x53 : 0x52);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- export-shared-block: whoever opens a small allocation has its neighbours, too --- */

static void *allocate_small(int byte, size_t size) {
    void *p = NULL;
    MUST(cudaMalloc(&p, size));
    MUST(cudaMemset(p, byte, size));
    MUST(cudaDeviceSynchronize());
    return p;
}

static void export_shared_block_exporter(void) {
    const size_t size = right() ? BLOCK : 1024;
    void *message = allocate_small(0x54, size), *secret = allocate_small(0x55, size);
    send_export(message);
    wait_for_peer();
    MUST(cudaFree(message));
    MUST(cudaFree(secret));
}

static void export_shared_block_importer(void) {
    unsigned char *q = open_received();
    check_byte(q, 0x54);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

const struct scenario export_scenarios[] = {
    {"export-not-capable", export_pool, NULL, false},
    {"export-not-capable-managed", export_managed, NULL, false},
    {"export-not-capable-host", export_host, NULL, false},
    {"export-interior", export_interior_exporter, export_interior_importer, false},
    {"export-shared-block", export_shared_block_exporter, export_shared_block_importer, false},
    {0}};
