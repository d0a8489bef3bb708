/*
 * event.c - events between processes.
 */
#include "misuse.h"

#include <sys/resource.h>

enum { SHARED = cudaEventInterprocess | cudaEventDisableTiming };

static cudaEvent_t create(void) {
    cudaEvent_t event = NULL;
    MUST(cudaEventCreateWithFlags(&event, SHARED));
    return event;
}

static void send_event(cudaEvent_t event) {
    cudaIpcEventHandle_t handle;
    MUST(cudaIpcGetEventHandle(&handle, event));
    send_bytes(&handle, sizeof(handle));
}

/* --- event-not-interprocess: made without the flags, or with only one of the two --- */

static void event_not_interprocess(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    MUST(cudaEventCreateWithFlags(&event, right() ? SHARED : cudaEventDisableTiming));
    CHECK(right() ? cudaSuccess : EITHER(cudaErrorInvalidResourceHandle, 9),
          cudaIpcGetEventHandle(&handle, event));
    MUST(cudaEventDestroy(event));
}

static void event_with_timing(void) {
    cudaEvent_t event = NULL;
    CHECK(right() ? cudaSuccess : cudaErrorInvalidValue,
          cudaEventCreateWithFlags(&event, right() ? SHARED : cudaEventInterprocess));
    if (right())
        MUST(cudaEventDestroy(event));
}

/* --- event-double-destroy: the driver dies of it, and the program with it; HIP refuses --- */

static void destroy(cudaEvent_t event, int expected) {
    CHECK(expected, cudaEventDestroy(event));
}

static void victim(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    cudaEvent_t event = create();
    destroy(event, cudaSuccess);
    if (!right())
        destroy(event, EITHER(cudaSuccess, 709));
    exit(0);
}

/* In a process of its own, for someone has to tell. */
static void event_double_destroy(void) {
    const pid_t pid = fork();
    if (pid == 0)
        victim();
    const int status = status_of(pid);
    if (right() || EITHER(false, true))
        note(status == 0, "the program has ended with status %d", status);
    else
        note(status == 128 + SIGSEGV, "the program was ended: %s",
             status > 128 ? strsignal(status - 128) : "by itself");
}

/* --- event-destroyed-while-open --- */

static void event_destroyed_exporter(void) {
    cudaEvent_t event = create();
    send_event(event);
    wait_for_peer(); /* it has opened; or, rightly, destroyed its own */
    CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
}

static void event_destroyed_importer(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    CHECK(cudaSuccess, cudaIpcOpenEventHandle(&event, handle));
    if (right())
        CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
    wait_for_peer(); /* it has destroyed it */
    if (right())
        return;
    CHECK(cudaSuccess, cudaEventQuery(event));
    CHECK(cudaSuccess, cudaEventDestroy(event));
}

/* --- event-open-own --- */

static void event_open_own(void) {
    cudaEvent_t event = create(), opened = event;
    cudaIpcEventHandle_t handle;
    MUST(cudaIpcGetEventHandle(&handle, event));
    if (!right())
        CHECK(cudaErrorDeviceUninitialized, cudaIpcOpenEventHandle(&opened, handle));
    CHECK(cudaSuccess, cudaEventRecord(event, NULL));
    CHECK(cudaSuccess, cudaEventSynchronize(event));
    CHECK(cudaSuccess, cudaEventDestroy(event));
}

/* --- event-unknown: the handle was never filled in; or it is one of memory --- */

static void open_event(const void *bytes, int expected) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    memcpy(&handle, bytes, sizeof(handle));
    CHECK(expected, cudaIpcOpenEventHandle(&event, handle));
    if (expected == cudaSuccess)
        CHECK(cudaSuccess, cudaEventDestroy(event));
}

static void event_exporter(void) {
    cudaEvent_t event = create();
    send_event(event);
    wait_for_peer();
    MUST(cudaEventDestroy(event));
}

static void event_unknown_importer(void) {
    cudaIpcEventHandle_t handle, zeros;
    take_bytes(&handle, sizeof(handle));
    memset(&zeros, 0, sizeof(zeros));
    open_event(right() ? &handle : &zeros,
               right() ? cudaSuccess : EITHER(205, cudaErrorInvalidValue));
    tell();
}

static void event_of_memory_exporter(void) {
    cudaEvent_t event = create();
    void *p = allocate(0x55);
    send_export(p);
    send_event(event);
    wait_for_peer();
    MUST(cudaFree(p));
    MUST(cudaEventDestroy(event));
}

static void event_of_memory_importer(void) {
    const cudaIpcMemHandle_t memory = take_handle();
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    open_event(right() ? (const void *)&handle : &memory,
               right() ? cudaSuccess : EITHER(205, cudaErrorInvalidValue));
    tell();
}

/* --- event-export-imported: passed on by who has only opened it --- */

static void event_export_imported(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle, again;
    take_bytes(&handle, sizeof(handle));
    CHECK(cudaSuccess, cudaIpcOpenEventHandle(&event, handle));
    if (!right())
        CHECK(400, cudaIpcGetEventHandle(&again, event));
    CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
}

#ifndef VENDOR_HIP
/* --- event-unknown-torn: one that the driver opens all the same, for it looks at a pid alone ---
 */

static void event_torn_importer(void) {
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    if (!right())
        handle.reserved[17] ^= 0x10; /* of another slot */
    open_event(&handle, cudaSuccess);
    tell();
}

/* --- event-stale: the handle came before the destroy, its opening comes after it --- */

static void event_stale_exporter(void) {
    cudaEvent_t event = create();
    send_event(event);
    if (right())
        wait_for_peer(); /* it is through */
    CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
    wait_for_peer();
}

static void event_stale_importer(void) {
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    if (right()) {
        open_event(&handle, cudaSuccess);
        tell();
    }
    wait_for_peer(); /* it has destroyed */
    if (!right())
        open_event(&handle, cudaSuccess);
    tell();
}

/* --- event-dead-owner: and the creator has ended --- */

static void event_dead_owner_exporter(void) {
    cudaEvent_t event = create();
    send_event(event);
    wait_for_peer(); /* it has one, too */
    if (!right())
        return;
    wait_for_peer();
    MUST(cudaEventDestroy(event));
}

/* It has one of its own, that it would give in return. */
static void event_dead_owner_importer(void) {
    cudaIpcEventHandle_t handle, own;
    cudaEvent_t event = create();
    MUST(cudaIpcGetEventHandle(&own, event));
    take_bytes(&handle, sizeof(handle));
    tell();
    if (!right())
        note(wait_for_end() == 0, "the creator has ended");
    open_event(&handle, cudaSuccess);
    MUST(cudaEventDestroy(event));
    if (right())
        tell();
}

/* --- event-never-recorded: the importer waits for work that nobody marks --- */

static void event_never_recorded_exporter(void) {
    cudaEvent_t event = create();
    if (right())
        MUST(cudaEventRecord(event, NULL));
    send_event(event);
    wait_for_peer();
    MUST(cudaEventDestroy(event));
}

static void event_never_recorded_importer(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    CHECK(cudaSuccess, cudaIpcOpenEventHandle(&event, handle));
    CHECK(cudaSuccess, cudaStreamWaitEvent(NULL, event, 0));
    CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
}

/* --- event-use-after-destroy: the driver dies of it --- */

static void late_user(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    cudaEvent_t event = create();
    MUST(cudaEventRecord(event, NULL));
    if (right())
        CHECK(cudaSuccess, cudaEventSynchronize(event));
    MUST(cudaEventDestroy(event));
    if (!right())
        (void)cudaEventSynchronize(event);
    exit(0);
}

static void event_use_after_destroy(void) {
    const pid_t pid = fork();
    if (pid == 0)
        late_user();
    const int status = status_of(pid);
    if (right())
        note(status == 0, "the program has ended with status %d", status);
    else
        note(status == 128 + SIGSEGV, "the program was ended: %s",
             status > 128 ? strsignal(status - 128) : "by itself");
}

/* Its handle is given all the same. */
static void event_export_after_destroy(void) {
    cudaEvent_t event = create();
    cudaIpcEventHandle_t handle;
    if (right())
        CHECK(cudaSuccess, cudaIpcGetEventHandle(&handle, event));
    MUST(cudaEventDestroy(event));
    if (!right())
        CHECK(cudaSuccess, cudaIpcGetEventHandle(&handle, event));
}

/* --- leak-event: one for each of many frames --- */

enum { FRAMES = 50 };

static void leak_event_importer(void) {
    cudaIpcEventHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    for (int i = 0; i < FRAMES; i++) {
        cudaEvent_t event = NULL;
        MUST(cudaIpcOpenEventHandle(&event, handle));
        if (right())
            MUST(cudaEventDestroy(event));
    }
    note(true, "%d frames are done", FRAMES);
    tell();
}

/* --- leak-event-exported: the next frame's event takes the place of this one's --- */

static void leak_event_exporter(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    for (int i = 0; i < FRAMES; i++) {
        event = create();
        MUST(cudaIpcGetEventHandle(&handle, event));
        if (right())
            MUST(cudaEventDestroy(event));
    }
    note(true, "%d frames are done", FRAMES);
}

/* An exporter that does not mind what others have open. */
static void event_keeper(void) {
    cudaEvent_t event = create();
    send_event(event);
    wait_for_peer();
    note(wait_for_end() == 0, "the importer has ended");
    MUST(cudaEventDestroy(event));
}
#endif

const struct scenario event_scenarios[] = {
#ifndef VENDOR_HIP
    {"event-unknown-torn", event_exporter, event_torn_importer, false},
    {"event-stale", event_stale_exporter, event_stale_importer, false},
    {"event-dead-owner", event_dead_owner_exporter, event_dead_owner_importer, true},
    {"event-never-recorded", event_never_recorded_exporter, event_never_recorded_importer, false},
    {"event-use-after-destroy", event_use_after_destroy, NULL, false},
    {"event-use-after-destroy-export", event_export_after_destroy, NULL, false},
    {"leak-event", event_keeper, leak_event_importer, false},
    {"leak-event-exported", leak_event_exporter, NULL, false},
#endif
    {"event-unknown", event_exporter, event_unknown_importer, false},
    {"event-unknown-memory", event_of_memory_exporter, event_of_memory_importer, false},
    {"event-export-imported", event_exporter, event_export_imported, false},
    {"event-not-interprocess", event_not_interprocess, NULL, false},
    {"event-not-interprocess-timing", event_with_timing, NULL, false},
    {"event-double-destroy", event_double_destroy, NULL, false},
    {"event-destroyed-while-open", event_destroyed_exporter, event_destroyed_importer, false},
    {"event-open-own", event_open_own, NULL, false},
    {0}};
