/*
 * free.c - memory that is freed too early, twice, or by who does not own it.
 */
#include "misuse.h"

/* --- free-while-open: the exporter frees what the importer still works on --- */

static void free_while_open_exporter(void) {
    void *p = allocate(0x11);
    send_export(p);
    wait_for_peer(); /* it has opened; or, rightly, closed */
    CHECK(cudaSuccess, cudaFree(p));
    tell();
}

static void free_while_open_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
    wait_for_peer(); /* it has freed */
    if (right())
        return;
    check_byte(q, 0x11); /* the driver keeps it: by luck, as CUDA promises nothing */
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
}

/* --- exit-while-open: the exporter is done and ends; nobody told it of the importer --- */

static void exit_while_open_exporter(void) {
    void *p = allocate(0x12);
    send_export(p);
    wait_for_peer(); /* it has opened; or, rightly, closed */
    if (right())
        CHECK(cudaSuccess, cudaFree(p));
}

static void exit_while_open_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
    wait_for_end();
    if (right())
        return;
    check_byte(q, 0x12);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
}

/* --- double-free --- */

static void release(void *p, int expected) {
    CHECK(expected, cudaFree(p));
}

static void double_free(void) {
    void *p = allocate(0x13);
    release(p, cudaSuccess);
    if (!right())
        release(p, cudaErrorInvalidValue);
}

/* --- free-interior: a pointer that walked through the buffer is freed instead of its start --- */

static void free_interior(void) {
    void *p = allocate(0x14);
    if (!right())
        CHECK(EITHER(cudaErrorInvalidValue, cudaSuccess), cudaFree(inside(p)));
    if (right() || EITHER(true, false)) /* HIP has freed the whole of it */
        CHECK(cudaSuccess, cudaFree(p));
}

/* --- free-unknown: the address of the variable, and a pointer that has walked to the end --- */

static void free_unknown(void) {
    void *p = allocate(0x16);
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaFree(&p));
    CHECK(cudaSuccess, cudaFree(p));
}

static void free_unknown_end(void) {
    char *p = allocate(0x17);
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaFree(p + BLOCK + 4096));
    CHECK(cudaSuccess, cudaFree(p));
}

/* --- free-imported: the importer frees what it should close --- */

static void free_imported_importer(void) {
    void *q = open_received();
    if (!right())
        CHECK(EITHER(cudaErrorInvalidValue, cudaSuccess), cudaFree(q));
    if (right() || EITHER(true, false)) { /* HIP has closed it */
        check_byte(q, OWNERS);
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    }
    tell();
}

const struct scenario free_scenarios[] = {
    {"free-while-open", free_while_open_exporter, free_while_open_importer, false},
    {"exit-while-open", exit_while_open_exporter, exit_while_open_importer, true},
    {"double-free", double_free, NULL, false},
    {"free-interior", free_interior, NULL, false},
    {"free-unknown", free_unknown, NULL, false},
    {"free-unknown-end", free_unknown_end, NULL, false},
    {"free-imported", owner, free_imported_importer, false},
    {0}};
