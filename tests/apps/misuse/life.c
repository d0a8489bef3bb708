/*
 * lifecycle.c - what is never closed or freed, and what ends or doubles a context with shared
 * memory in it.
 */
#include "misuse.h"

/* Frees when the importer has ended, whatever that left open. */
static void patient_owner(void) {
    void *p = allocate(0x61);
    send_export(p);
    note(wait_for_end() == 0, "the importer has ended");
    MUST(cudaFree(p));
}

/* --- leak-open --- */

static void leak_open_importer(void) {
    void *q = open_received();
    check_byte(q, 0x61);
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
}

/* --- unbalanced-open: one reference a user, and one user forgets --- */

static void *acquire(cudaIpcMemHandle_t handle) {
    void *q = NULL;
    CHECK(cudaSuccess, cudaIpcOpenMemHandle(&q, handle, LAZY));
    return q;
}

static void unbalanced_open_importer(void) {
    const cudaIpcMemHandle_t handle = take_handle();
    const int users = right() ? 1 : 3;
    void *q[3]; /* equal, but with HIP's version 6 */
    for (int i = 0; i < users; i++)
        q[i] = acquire(handle);
    for (int i = 0; i < (right() ? 1 : users - 1); i++)
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q[i]));
    if (!right())
        check_byte(q[users - 1], 0x61);
}

/* --- leak-export --- */

static void leak_export(void) {
    void *p = allocate(0x62);
    cudaIpcMemHandle_t handle;
    CHECK(cudaSuccess, cudaIpcGetMemHandle(&handle, p));
    if (right())
        CHECK(cudaSuccess, cudaFree(p));
}

/* --- reset-with-shared: by the importer, which loses what it has open --- */

static void reset_importer(void) {
    void *q = open_received();
    check_byte(q, 0x61);
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    CHECK(cudaSuccess, cudaDeviceReset());
}

/* By the exporter, whose memory goes without a free. */
static void reset_exporter(void) {
    void *p = allocate(0x63);
    send_export(p);
    wait_for_peer(); /* it has opened; or, rightly, closed */
    if (right())
        CHECK(cudaSuccess, cudaFree(p));
    CHECK(cudaSuccess, cudaDeviceReset());
    tell();
}

static void reset_exporters_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
    wait_for_peer(); /* it has reset */
    if (right())
        return;
    check_byte(q, 0x63);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
}

/* --- fork-with-context: the child of a program that uses CUDA cannot --- */

static void child(void) {
    void *p = NULL;
    CHECK(right() ? cudaSuccess : cudaErrorInitializationError, cudaMalloc(&p, BLOCK));
    if (right())
        CHECK(cudaSuccess, cudaFree(p));
    _exit(0);
}

static void fork_with_context(void) {
    if (!right())
        MUST(cudaFree(NULL)); /* which initialises CUDA */
    const pid_t pid = fork();
    if (pid == 0)
        child();
    note(status_of(pid) == 0, "the child has ended");
    CHECK(cudaSuccess, cudaFree(NULL)); /* the parent's CUDA works on */
}

/* --- leak-memory: a function keeps its scratch memory; what an exit handler frees is none --- */

static void *kept;

static void free_late(void) {
    if (kept)
        cudaFree(kept);
}

/* Older than the first CUDA call: it runs when CUDA has shut down. */
__attribute__((constructor)) static void make_late(void) {
    atexit(free_late);
}

static void leak_memory(void) {
    kept = allocate(0x67);
    void *scratch = allocate(0x68);
    if (right())
        CHECK(cudaSuccess, cudaFree(scratch));
}

const struct scenario life_scenarios[] = {
    {"leak-open", patient_owner, leak_open_importer, false},
    {"unbalanced-open", patient_owner, unbalanced_open_importer, false},
    {"leak-export", leak_export, NULL, false},
    {"reset-with-shared", patient_owner, reset_importer, false},
    {"reset-with-shared-exporter", reset_exporter, reset_exporters_importer, false},
    {"leak-memory", leak_memory, NULL, false},
    {"fork-with-context", fork_with_context, NULL, false},
    {0}};
