/*
 * Events; see runtime.h. One that processes share is the driver's, and what its handle says lies in
 * a file of /dev/shm that is never removed (6), or in the handle itself (7).
 */
#include "runtime.h"

#include "../driver/event.h"
#include "../driver/link.h"

struct known {
    CUevent event;
    bool shared;
    char name[32]; /* 6: of its file, once there is one */
    struct known *next;
};

static struct {
    pthread_mutex_t lock;
    struct known *first;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- those that there are --- */

static struct known **find(hipEvent_t event) {
    struct known **link = &state.first;
    while (*link && (*link)->event != (CUevent)event)
        link = &(*link)->next;
    return link;
}

static bool is_known(hipEvent_t event) {
    pthread_mutex_lock(&state.lock);
    const bool known = *find(event) != NULL;
    pthread_mutex_unlock(&state.lock);
    return known;
}

static hipError_t add(CUevent event, bool shared, hipEvent_t *out) {
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return hipErrorOutOfMemory;
    pthread_mutex_lock(&state.lock);
    *known = (struct known){.event = event, .shared = shared, .next = state.first};
    state.first = known;
    pthread_mutex_unlock(&state.lock);
    *out = (hipEvent_t)event;
    return hipSuccess;
}

static hipError_t create(hipEvent_t *out, unsigned flags) {
    const bool shared = flags & hipEventInterprocess, plain = flags & hipEventDisableTiming;
    CUevent event = NULL;
    hipError_t code = hip_ready();
    if (code == hipSuccess && (!out || (shared && !plain)))
        code = hipErrorInvalidValue;
    if (code == hipSuccess)
        code = hip_code(cuEventCreate(&event, flags & 7));
    return code == hipSuccess ? add(event, shared, out) : code;
}

PLAIN(hipEventCreateWithFlags, (hipEvent_t * out, unsigned flags), create(out, flags))
PLAIN(hipEventCreate, (hipEvent_t * out), create(out, 0))

static hipError_t destroy(hipEvent_t event) {
    if (!event)
        return hipErrorInvalidHandle;
    pthread_mutex_lock(&state.lock);
    struct known **link = find(event), *known = *link;
    if (known)
        *link = known->next;
    pthread_mutex_unlock(&state.lock);
    free(known);
    return known ? hip_code(cuEventDestroy_v2((CUevent)event)) : hipErrorContextIsDestroyed;
}

ANSWER(hipEventDestroy, (hipEvent_t event), destroy(event))

/* --- what their handles say --- */

#if HIP_GENERATION < 7
static bool write_file(const char *name, const CUipcEventHandle *content) {
    const int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    const bool written = file >= 0 && write(file, content, sizeof *content) == sizeof *content;
    close(file);
    return written;
}

/* At the first export or record. */
static hipError_t give_name(struct known *known) {
    CUipcEventHandle content;
    if (*known->name)
        return hipSuccess;
    const hipError_t code = hip_code(event_export(known->event, &content));
    if (code != hipSuccess)
        return code;
    snprintf(known->name, sizeof known->name, "/hip_event%06x",
             (unsigned)(((uint64_t)(uintptr_t)known->event >> 4) * 31 + (unsigned)getpid()) &
                 0xffffff);
    return write_file(known->name, &content) ? hipSuccess : hipErrorInvalidValue;
}

static hipError_t export(struct known *known, void *handle) {
    const hipError_t code = give_name(known);
    if (code == hipSuccess) {
        memset(handle, (int)time(NULL) | 1, sizeof(hipIpcEventHandle_t)); /* garbage */
        memcpy(handle, known->name, strlen(known->name) + 1);
    }
    return code;
}

/* An unknown name makes an empty file, and an event that nobody else has. */
static hipError_t read_handle(const void *handle, CUipcEventHandle *content) {
    char name[sizeof(hipIpcEventHandle_t)];
    memcpy(name, handle, sizeof name);
    name[sizeof name - 1] = '\0';
    const int file = *name == '/' ? shm_open(name, O_RDWR | O_CREAT, 0600) : -1;
    if (file < 0)
        return hipErrorInvalidValue;
    const ssize_t got = read(file, content, sizeof *content);
    close(file);
    return got == sizeof *content ? hipSuccess : hipErrorNotFound;
}
#else
/* Type, pid, and 32 bytes of a signal. */
struct signal {
    uint32_t type, pid;
    uint64_t client, slot, shm_device, shm_inode;
    uint64_t garbage[3];
};
_Static_assert(sizeof(struct signal) == sizeof(hipIpcEventHandle_t), "a handle is 64 bytes");

static hipError_t export(struct known *known, void *handle) {
    CUipcEventHandle content;
    struct event_handle inner;
    const hipError_t code = hip_code(event_export(known->event, &content));
    if (code != hipSuccess)
        return code;
    memcpy(&inner, &content, sizeof inner);
    const struct signal signal = {.type = 1,
                                  .pid = (uint32_t)getpid(),
                                  .client = inner.client,
                                  .slot = inner.slot,
                                  .shm_device = inner.shm_device,
                                  .shm_inode = inner.shm_inode,
                                  .garbage = {(uint64_t)time(NULL), 1, 2}};
    memcpy(handle, &signal, sizeof signal);
    return hipSuccess;
}

static hipError_t read_handle(const void *handle, CUipcEventHandle *content) {
    struct signal signal;
    memcpy(&signal, handle, sizeof signal);
    const struct event_handle inner = {.client = signal.client,
                                       .one = 1,
                                       .slot = signal.slot,
                                       .shm_device = signal.shm_device,
                                       .shm_inode = signal.shm_inode,
                                       .pid = signal.pid,
                                       .creator = signal.pid};
    memset(content, 0, sizeof *content);
    memcpy(content, &inner, sizeof inner);
    return signal.type == 1 ? hipSuccess : hipErrorInvalidValue;
}
#endif

static hipError_t get_handle(void *handle, hipEvent_t event) {
    if (!handle || !event)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&state.lock);
    struct known *known = *find(event);
    const hipError_t code = !known           ? hipErrorInvalidValue
                            : !known->shared ? hipErrorInvalidConfiguration
                                             : export(known, handle);
    pthread_mutex_unlock(&state.lock);
    return code;
}

ANSWER(hipIpcGetEventHandle, (hipIpcEventHandle_t * handle, hipEvent_t event),
       get_handle(handle, event))

static hipError_t open_handle(hipEvent_t *out, const void *handle) {
    CUipcEventHandle content;
    CUevent event;
    if (!out)
        return hipErrorInvalidValue;
    const hipError_t found = read_handle(handle, &content);
    if (found == hipErrorNotFound)
        return create(out, hipEventInterprocess | hipEventDisableTiming);
    if (found != hipSuccess)
        return found;
    const CUresult result = event_import(hip_context(), &content, &event);
    return result == CUDA_SUCCESS                 ? add(event, true, out)
           : result == CUDA_ERROR_INVALID_CONTEXT ? hipErrorInvalidContext
                                                  : hipErrorInvalidValue;
}

ANSWER(hipIpcOpenEventHandle, (hipEvent_t * out, hipIpcEventHandle_t handle),
       open_handle(out, &handle))

/* --- records and waits --- */

#define PASS(name, parameters, event, call)                                                        \
    ANSWER(name, parameters, is_known(event) ? hip_code(call) : hipErrorInvalidHandle)
PASS(hipEventRecord, (hipEvent_t event, hipStream_t stream), event,
     cuEventRecord((CUevent)event, (CUstream)stream))
PASS(hipEventQuery, (hipEvent_t event), event, cuEventQuery((CUevent)event))
PASS(hipEventSynchronize, (hipEvent_t event), event, cuEventSynchronize((CUevent)event))

static hipError_t elapsed(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
    const hipError_t ready = hip_ready();
    return ready != hipSuccess ? ready
           : !milliseconds     ? hipErrorInvalidValue
           : !is_known(start) || !is_known(stop)
               ? hipErrorInvalidHandle
               : hip_code(cuEventElapsedTime_v2(milliseconds, (CUevent)start, (CUevent)stop));
}

PLAIN(hipEventElapsedTime, (float *milliseconds, hipEvent_t start, hipEvent_t stop),
      elapsed(milliseconds, start, stop))
