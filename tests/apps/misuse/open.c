/*
 * open.c - handles that are opened twice, too late, damaged, or with wrong flags.
 */
#include "misuse.h"

/* --- double-open: works, as the driver counts; but who does not know that closes once --- */

static void double_open_importer(void) {
    void *q = NULL, *again = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    CHECK(cudaSuccess, cudaIpcOpenMemHandle(&q, handle, LAZY));
    again = q; /* what it should do: keep the pointer */
    if (!right()) {
        CHECK(cudaSuccess, cudaIpcOpenMemHandle(&again, handle, LAZY));
        if (EITHER(true, false)) /* HIP's version 6 gives two */
            note(again == q, "both pointers are equal");
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(again));
    }
    check_byte(q, OWNERS);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- null-output: nowhere to put the pointer --- */

static void null_output_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (right()) {
        CHECK(cudaSuccess, cudaIpcOpenMemHandle(&q, handle, LAZY));
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    } else {
        CHECK(cudaErrorInvalidValue, cudaIpcOpenMemHandle(NULL, handle, LAZY));
    }
    tell();
}

/* --- open-own-handle: "just open it" in the process that has it --- */

static void open_own_handle(void) {
    void *p = allocate(0x32), *q = p;
    cudaIpcMemHandle_t handle;
    MUST(cudaIpcGetMemHandle(&handle, p));
    if (!right())
        CHECK(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&q, handle, LAZY));
    check_byte(p, 0x32);
    CHECK(cudaSuccess, cudaFree(p));
}

/* --- open-stale: the handle came before the free, its opening comes after it --- */

static void open_stale_exporter(void) {
    void *p = allocate(0x33);
    send_export(p);
    if (right())
        wait_for_peer(); /* it is through */
    CHECK(cudaSuccess, cudaFree(p));
    tell();
    wait_for_peer();
}

static void open_stale_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (right()) {
        CHECK(cudaSuccess, cudaIpcOpenMemHandle(&q, handle, LAZY));
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
        tell();
    }
    wait_for_peer(); /* it has freed */
    if (!right())
        CHECK(EITHER(cudaErrorInvalidValue, 17), cudaIpcOpenMemHandle(&q, handle, LAZY));
    tell();
}

/* --- open-stale-reused: and the address has been given out again, so that the driver says yes ---
 */

static void open_stale_reused_exporter(void) {
    void *p = allocate(0x34);
    send_export(p);
    CHECK(cudaSuccess, cudaFree(p));
    void *next = allocate(0x35);
    if (next != p)
        skip("the driver did not give the same address again");
    send_export(next);
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(next));
}

static void open_stale_reused_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t old = take_handle(), new = take_handle();
    CHECK(right() ? cudaSuccess : EITHER(cudaSuccess, 17),
          cudaIpcOpenMemHandle(&q, right() ? new : old, LAZY));
    if (q) {
        check_byte(q, 0x35); /* wrongly: meant was the memory of 34 */
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    }
    tell();
}

/* --- open-dead-owner: the exporter is gone before its memory is opened --- */

static void open_dead_owner_exporter(void) {
    void *p = allocate(0x36);
    send_export(p);
    if (!right())
        kill(getpid(), SIGKILL); /* as the out-of-memory killer ends it */
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(p));
}

static void open_dead_owner_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (!right())
        note(wait_for_end() == 128 + SIGKILL, "the exporter was killed");
    CHECK(right() ? cudaSuccess : EITHER(cudaErrorInvalidResourceHandle, 17),
          cudaIpcOpenMemHandle(&q, handle, LAZY));
    if (!right())
        return;
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-unknown: sent as if it were a text, the handle ends at its first zero byte --- */

static void open_unknown_importer(void) {
    void *q = NULL;
    cudaIpcMemHandle_t handle = take_handle();
    if (!right()) {
        cudaIpcMemHandle_t arrived = {0};
        strncpy(arrived.reserved, handle.reserved, sizeof(arrived.reserved) - 1);
        handle = arrived;
    }
    const cudaError_t code = cudaIpcOpenMemHandle(&q, handle, LAZY);
    /* of zeros it is 1; which of the checks sees what is left of it first is not recorded */
    const cudaError_t refused =
        code == EITHER(cudaErrorInvalidResourceHandle, 17) ? code : cudaErrorInvalidValue;
    check_code((int)code, (int)(right() ? cudaSuccess : refused), "cudaIpcOpenMemHandle");
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-unknown-cut: by who counted 40 bytes --- */

static void open_cut_importer(void) {
    void *q = NULL;
    cudaIpcMemHandle_t handle = take_handle();
    if (!right())
        memset(handle.reserved + 40, 0, sizeof(handle.reserved) - 40);
    const cudaError_t code = cudaIpcOpenMemHandle(&q, handle, LAZY);
    note((code == cudaSuccess) == right(), right() ? "it opens" : "it does not open");
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-unknown-mixed: two messages in one buffer --- */

static void export_two(size_t second) {
    void *p = allocate(0x38), *q = NULL;
    MUST(cudaMalloc(&q, second));
    send_export(p);
    send_export(q);
    wait_for_peer();
    MUST(cudaFree(p));
    MUST(cudaFree(q));
}

static void open_mixed_exporter(void) {
    export_two((size_t)2 * BLOCK);
}

static void open_mixed_equal_exporter(void) {
    export_two(BLOCK);
}

static void open_mixed(size_t cut) {
    void *q = NULL;
    cudaIpcMemHandle_t handle = take_handle();
    const cudaIpcMemHandle_t other = take_handle();
    if (!right())
        memcpy(handle.reserved + cut, other.reserved + cut, sizeof(handle.reserved) - cut);
    const cudaError_t code = cudaIpcOpenMemHandle(&q, handle, LAZY);
    /* A driver may open it, and map one of the two. */
    note(code == cudaSuccess || !right(), code == cudaSuccess ? "it opens" : "it does not open");
    if (code == cudaSuccess)
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

static void open_mixed_importer(void) {
    open_mixed(40);
}

/* Of one size, a driver opens it. */
static void open_mixed_equal_importer(void) {
    open_mixed(48);
}

/* --- open-unknown-exited: the exporter ended as programs do. It leaves nothing that tells of it,
 * unless somebody else is there: then this is open-dead-owner --- */

static void open_exited_owner_exporter(void) {
    void *p = allocate(0x37);
    send_export(p);
    if (!right())
        return;
    wait_for_peer();
    CHECK(cudaSuccess, cudaFree(p));
}

static void open_exited_owner_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (!right())
        note(wait_for_end() == 0, "the exporter has ended");
    CHECK(right() ? cudaSuccess : EITHER(cudaErrorInvalidResourceHandle, 17),
          cudaIpcOpenMemHandle(&q, handle, LAZY));
    if (!right())
        return;
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-bad-flags: 0 looks like "no flags", but there is only one value --- */

static void open_bad_flags_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (!right())
        CHECK(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&q, handle, 0));
    CHECK(cudaSuccess, cudaIpcOpenMemHandle(&q, handle, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

const struct scenario open_scenarios[] = {
    {"null-output", owner, null_output_importer, false},
    {"double-open", owner, double_open_importer, false},
    {"open-own-handle", open_own_handle, NULL, false},
    {"open-stale", open_stale_exporter, open_stale_importer, false},
    {"open-stale-reused", open_stale_reused_exporter, open_stale_reused_importer, false},
    {"open-dead-owner", open_dead_owner_exporter, open_dead_owner_importer, true},
    {"open-unknown-exited", open_exited_owner_exporter, open_exited_owner_importer, true},
    {"open-unknown", owner, open_unknown_importer, false},
    {"open-unknown-cut", owner, open_cut_importer, false},
    {"open-unknown-mixed", open_mixed_exporter, open_mixed_importer, false},
    {"open-unknown-mixed-equal", open_mixed_equal_exporter, open_mixed_equal_importer, false},
    {"open-bad-flags", owner, open_bad_flags_importer, false},
    {0}};
