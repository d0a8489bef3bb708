/*
 * context.c - opening in the wrong place: a second context, a thread without one, a device that
 * cannot reach the memory, a mount namespace with a /dev/shm of its own.
 */
#include "misuse.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

/* The driver's type of the same 64 bytes. */
static CUipcMemHandle drivers(const cudaIpcMemHandle_t *bytes) {
    CUipcMemHandle handle;
    memcpy(&handle, bytes, sizeof(handle));
    return handle;
}

/* --- open-second-context: a plug-in with a context of its own opens what the program has open ---
 */

static void plugin(void *q, const cudaIpcMemHandle_t *handle) {
    CUcontext own = NULL;
    CUdeviceptr pointer = 0;
    if (!right()) {
        MUST(CU(cuCtxCreate)(&own, NULL, 0, 0));
        CHECK(CUDA_ERROR_INVALID_HANDLE, CU(cuIpcOpenMemHandle)(&pointer, drivers(handle), LAZY));
        MUST(CU(cuCtxDestroy)(own));
    }
    check_byte(q, OWNERS);
}

static void open_second_context_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    MUST(cudaIpcOpenMemHandle(&q, handle, LAZY));
    plugin(q, &handle);
    CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-no-context: the driver's call in a thread that nobody gave a context --- */

static void *worker(void *argument) {
    CUdeviceptr q = 0;
    if (right())
        MUST(cudaSetDevice(0));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT,
          CU(cuIpcOpenMemHandle)(&q, drivers(argument), LAZY));
    if (right())
        CHECK(CUDA_SUCCESS, CU(cuIpcCloseMemHandle)(q));
    return NULL;
}

static void open_no_context_importer(void) {
    pthread_t thread;
    cudaIpcMemHandle_t handle = take_handle();
    MUST(cudaFree(NULL)); /* the program's other threads use CUDA all the time */
    MUST(pthread_create(&thread, NULL, worker, &handle));
    pthread_join(thread, NULL);
    tell();
}

/* --- open-peer-denied: the device that is current there has no way to the exporter's --- */

static bool unreachable(int device) {
    int devices = 0, can = 1;
    MUST(cudaGetDeviceCount(&devices));
    if (devices > device)
        MUST(cudaDeviceCanAccessPeer(&can, device, 0));
    return !can;
}

static void open_peer_denied_importer(void) {
    void *q = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    if (!right() && !unreachable(1)) {
        tell();
        skip("it takes two devices without peer access");
    }
    MUST(cudaSetDevice(right() ? 0 : 1));
    CHECK(right() ? cudaSuccess : cudaErrorPeerAccessUnsupported,
          cudaIpcOpenMemHandle(&q, handle, LAZY));
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- event-other-container: in a container with a /dev/shm of its own, an event is not found ---
 */

static bool put(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A mount namespace of our own, in a user namespace (with our own ids in it) where we are not root.
 */
static bool leave_mounts(void) {
    const unsigned uid = geteuid(), gid = getegid();
    char users[64], groups[64];
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    snprintf(users, sizeof(users), "%u %u 1", uid, uid);
    snprintf(groups, sizeof(groups), "%u %u 1", gid, gid);
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/uid_map", users) &&
           put("/proc/self/setgroups", "deny") && put("/proc/self/gid_map", groups);
}

static bool private_shm(void) {
    return leave_mounts() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, "mode=1777") == 0;
}

static void event_other_container_exporter(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    MUST(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    MUST(cudaIpcGetEventHandle(&handle, event));
    send_bytes(&handle, sizeof(handle));
    wait_for_peer();
    MUST(cudaEventDestroy(event));
}

static void event_other_container_importer(void) {
    cudaEvent_t event = NULL;
    cudaIpcEventHandle_t handle;
    if (!right() && !private_shm())
        skip("it takes a mount namespace, and this user may not have one");
    take_bytes(&handle, sizeof(handle));
    CHECK(right() ? cudaSuccess : cudaErrorMapBufferObjectFailed,
          cudaIpcOpenEventHandle(&event, handle));
    if (right())
        CHECK(cudaSuccess, cudaEventDestroy(event));
    tell();
}

/* --- open-other-namespace: a process with the exporter's pid, in a container of its own --- */

static void open_other_namespace_exporter(void) {
    const pid_t pid = getpid();
    void *p = allocate(0x41);
    send_bytes(&pid, sizeof(pid));
    send_export(p);
    wait_for_peer();
    MUST(cudaFree(p));
}

/* In a pid namespace of its own, with a /proc that shows it, so that the next process gets this
 * pid. */
static bool precede(pid_t pid) {
    char text[16];
    snprintf(text, sizeof(text), "%d", pid - 1);
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/proc", "proc", 0, NULL) == 0 &&
           put("/proc/sys/kernel/ns_last_pid", text);
}

/* A new process goes on from here, with the given pid. */
static void become(pid_t pid) {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        skip("it takes a pid namespace, and this user may not have one");
    for (int generation = 0; generation < 2; generation++) {
        if (generation == 1 && !precede(pid))
            skip("it takes a /proc of its own, and this user may not mount one");
        const pid_t child = fork();
        if (child != 0)
            exit(child > 0 ? status_of(child) : 1);
    }
    if (getpid() != pid)
        skip("another process has the pid");
}

static void open_other_namespace_importer(void) {
    void *q = NULL;
    pid_t pid;
    take_bytes(&pid, sizeof(pid));
    if (!right())
        become(pid);
    const cudaIpcMemHandle_t handle = take_handle();
    CHECK(right() ? cudaSuccess : cudaErrorDeviceUninitialized,
          cudaIpcOpenMemHandle(&q, handle, LAZY));
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    tell();
}

/* --- open-place-held: what was opened first is freed, and still open here --- */

static void *small(void *before, size_t size) {
    void *p = NULL;
    if (before)
        MUST(cudaFree(before));
    MUST(cudaMalloc(&p, size));
    send_export(p);
    wait_for_peer();
    return p;
}

/* Small allocations share a block, and the next one of a size that fits lies where one was; what
 * fills blocks of its own does not. */
static void open_place_held_exporter(void) {
    void *neighbour = NULL;
    MUST(cudaMalloc(&neighbour, 1024));
    void *p = small(NULL, right() ? BLOCK : 1024);
    p = small(p, right() ? BLOCK : 512);
    MUST(cudaFree(p));
    MUST(cudaFree(neighbour));
}

static void open_place_held_importer(void) {
    void *first = open_received(), *second = NULL;
    if (right())
        MUST(cudaIpcCloseMemHandle(first));
    tell();
    const cudaIpcMemHandle_t handle = take_handle();
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_MAPPED,
          cudaIpcOpenMemHandle(&second, handle, LAZY));
    MUST(cudaIpcCloseMemHandle(right() ? second : first));
    tell();
}

/* --- call-after-shutdown: by what a static object does at its end, after CUDA's own --- */

static void *left;

static void close_late(void) {
    if (left)
        CHECK(CUDA_ERROR_DEINITIALIZED, cudaIpcCloseMemHandle(left));
}

__attribute__((constructor)) static void make_static_object(void) {
    atexit(close_late);
}

static void call_after_shutdown_importer(void) {
    void *q = open_received();
    if (right())
        CHECK(cudaSuccess, cudaIpcCloseMemHandle(q));
    else
        left = q;
}

/* Frees when the importer has ended. */
static void patient_owner(void) {
    void *p = allocate(0x42);
    send_export(p);
    note(wait_for_end() == 0, "the importer has ended");
    MUST(cudaFree(p));
}

/* --- ipc-call-failed: nothing is said of what is shared --- */

static void ipc_call_failed(void) {
    CUipcEventHandle handle;
    cudaEvent_t event = NULL;
    MUST(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuIpcGetEventHandle)(&handle, right() ? event : NULL));
    MUST(cudaEventDestroy(event));
}

const struct scenario context_scenarios[] = {
    {"open-place-held", open_place_held_exporter, open_place_held_importer, false},
    {"call-after-shutdown", patient_owner, call_after_shutdown_importer, false},
    {"ipc-call-failed", ipc_call_failed, NULL, false},
    {"open-second-context", owner, open_second_context_importer, false},
    {"open-no-context", owner, open_no_context_importer, false},
    {"open-peer-denied", owner, open_peer_denied_importer, false},
    {"event-other-container", event_other_container_exporter, event_other_container_importer,
     false},
    {"open-other-namespace", open_other_namespace_exporter, open_other_namespace_importer, false},
    {0}};
