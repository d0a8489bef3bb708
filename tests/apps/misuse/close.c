/*
 * close.c - cudaIpcCloseMemHandle for what it is not for.
 */
#include "misuse.h"

static void close_again(void *q, int expected) {
    CHECK(expected, cudaIpcCloseMemHandle(q));
}

/* --- close-unopened: the importer closes the exporter's address instead of its own --- */

static void close_unopened_exporter(void) {
    void *p = allocate(0x23);
    send_export(p);
    send_bytes(&p, sizeof(p)); /* "it is at ..." */
    wait_for_peer();
    MUST(cudaFree(p));
}

static void close_unopened_importer(void) {
    void *q = open_received(), *p = NULL;
    take_bytes(&p, sizeof(p));
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaIpcCloseMemHandle(p));
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- close-unopened-null: of what was never opened --- */

static void close_unopened_null(void) {
    void *p = allocate(0x24);
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaIpcCloseMemHandle(NULL));
    MUST(cudaFree(p));
}

/* --- double-close --- */

static void double_close_importer(void) {
    void *q = open_received();
    close_again(q, cudaSuccess);
    if (!right())
        close_again(q, cudaErrorInvalidValue);
    tell();
}

/* --- close-interior --- */

static void close_interior_importer(void) {
    void *q = open_received();
    if (!right())
        CHECK(EITHER(cudaErrorInvalidValue, cudaSuccess), cudaIpcCloseMemHandle(inside(q)));
    if (right() || EITHER(true, false)) /* HIP has closed the whole of it */
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- close-own: the exporter closes what it should free --- */

static void close_own(void) {
    void *p = allocate(0x22);
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaIpcCloseMemHandle(p));
    CHECK(cudaSuccess, cudaFree(p));
}

const struct scenario close_scenarios[] = {
    {"close-unopened", close_unopened_exporter, close_unopened_importer, false},
    {"close-unopened-null", close_unopened_null, NULL, false},
    {"double-close", owner, double_close_importer, false},
    {"close-interior", owner, close_interior_importer, false},
    {"close-own", close_own, NULL, false},
    {0}};
