/* Events; see event.h. */
#include "event.h"

#include "context.h"
#include "link.h"
#include "state.h"
#include "stream.h"

#include <linux/futex.h>

enum {
    EVENT_MAGIC = 0x45767431,
    EVENT_DEAD = 0x45767430,
    EVENT_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
    NO_SLOT = -1,
};

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    CUcontext context;
    int64_t slot; /* in the daemon's page, or NO_SLOT */
    bool imported, ever;
    CUstream captured; /* whose capture its newest record is in, or NULL */
    struct sim_event *state, own;
    double at; /* ms, of the newest record that was reached */
    struct CUevent_st *next;
};

static struct {
    pthread_mutex_t lock;
    CUevent first; /* all there ever were, dead ones too */
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUresult check(CUevent event) {
    TRY(state_check());
    REFUSE(!event, CUDA_ERROR_INVALID_HANDLE);
    if (event->magic == EVENT_DEAD)
        raise(SIGSEGV);
    REFUSE(event->magic != EVENT_MAGIC, CUDA_ERROR_INVALID_CONTEXT);
    return context_state(event->context);
}

static CUevent create(CUcontext context, unsigned flags, int64_t slot) {
    CUevent event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->magic = EVENT_MAGIC;
    event->flags = flags;
    event->context = context;
    event->slot = slot;
    event->state = slot == NO_SLOT ? &event->own : link_event((uint64_t)slot);
    pthread_mutex_lock(&events.lock);
    event->next = events.first;
    events.first = event;
    pthread_mutex_unlock(&events.lock);
    return event;
}

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned int flags) {
    struct sim_reply reply = {.a = 0};
    CURRENT(context);
    bool shared = flags & CU_EVENT_INTERPROCESS;
    if (!out || flags & ~(unsigned)EVENT_FLAGS || (shared && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (shared) {
        struct sim_request request = {.op = SIM_EVENT_CREATE};
        TRY(link_call(&request, &reply));
    }
    CUevent event = create(context, flags, shared ? (int64_t)reply.a : NO_SLOT);
    REFUSE(!event, CUDA_ERROR_OUT_OF_MEMORY);
    *out = event;
    return CUDA_SUCCESS;
}

/* What a card without EGL says. */
CALL(cuEventCreateFromEGLSync, (CUevent * out, void *sync, unsigned int flags),
     CUDA_ERROR_NOT_SUPPORTED)

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
    TRY(check(event));
    pthread_mutex_lock(&events.lock);
    event->magic = EVENT_DEAD;
    pthread_mutex_unlock(&events.lock);
    return CUDA_SUCCESS;
}

CALL(cuEventDestroy, (CUevent event), cuEventDestroy_v2(event))

/* --- recording and waiting --- */

static uint32_t load(const uint32_t *counter) {
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static bool reached(const struct sim_event *state, uint32_t record) {
    return (int32_t)(load(&state->completed) - record) >= 0;
}

static void wait_for(struct sim_event *state, uint32_t record) {
    /* Woken by a process that may die first: look again now and then. */
    struct timespec timeout = {.tv_nsec = 20000000};
    while (!reached(state, record)) {
        uint32_t seen = load(&state->completed);
        if (!reached(state, record))
            syscall(SYS_futex, &state->completed, FUTEX_WAIT, seen, &timeout, NULL, 0);
    }
}

struct record {
    CUevent event;
    uint32_t number;
};

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static CUresult reach(void *argument) {
    struct record *record = argument;
    struct sim_event *state = record->event->state;
    pthread_mutex_lock(&events.lock);
    record->event->at = now_ms();
    pthread_mutex_unlock(&events.lock);
    while (!reached(state, record->number)) {
        uint32_t seen = load(&state->completed);
        __atomic_compare_exchange_n(&state->completed, &seen, record->number, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    syscall(SYS_futex, &state->completed, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return CUDA_SUCCESS;
}

static const struct work recording = {.run = reach, .brief = true, .once = true};

static CUresult record(CUevent event, CUstream named, bool per_thread) {
    TRY(check(event));
    RESOLVED(stream, named, per_thread);
    struct record *record = malloc(sizeof *record);
    REFUSE(!record, CUDA_ERROR_OUT_OF_MEMORY);
    record->event = event;
    record->number = load(&event->state->completed);
    event->captured = stream_capturing(stream) ? stream : NULL;
    if (!event->captured) {
        record->number = __atomic_add_fetch(&event->state->recorded, 1, __ATOMIC_ACQ_REL);
        event->ever = true;
    }
    return stream_submit(stream, &recording, record);
}

BOTH(cuEventRecord, (CUevent event, CUstream stream), record(event, stream, per_thread))
BOTH(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
     flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(event, stream, per_thread))

/* 907 of one whose record is a part of a graph; that ends the capture. */
static CUresult check_waitable(CUevent event) {
    TRY(check(event));
    REFUSE(!event->captured, capture_forbidden());
    capture_own(event->captured);
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
    TRY(check_waitable(event));
    return reached(event->state, load(&event->state->recorded)) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    TRY(check_waitable(event));
    wait_for(event->state, load(&event->state->recorded));
    return context_state(event->context);
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
    TRY(check(start));
    TRY(check(end));
    REFUSE(!milliseconds, CUDA_ERROR_INVALID_VALUE);
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->ever || !end->ever)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!reached(start->state, load(&start->state->recorded)) ||
        !reached(end->state, load(&end->state->recorded)))
        return CUDA_ERROR_NOT_READY;
    pthread_mutex_lock(&events.lock);
    *milliseconds = (float)(end->at - start->at);
    pthread_mutex_unlock(&events.lock);
    return CUDA_SUCCESS;
}

CALL(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
     elapsed(milliseconds, start, end))
CALL(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end),
     elapsed(milliseconds, start, end))

struct wait {
    struct sim_event *state;
    uint32_t number;
};

static CUresult run_wait(void *argument) {
    const struct wait *wait = argument;
    wait_for(wait->state, wait->number);
    return CUDA_SUCCESS;
}

static const struct work waiting = {.run = run_wait, .apart = true, .once = true};

static CUresult wait_event(CUstream named, bool per_thread, CUevent event) {
    TRY(check(event));
    RESOLVED(stream, named, per_thread);
    uint32_t number = load(&event->state->recorded);
    if (reached(event->state, number))
        return CUDA_SUCCESS;
    struct wait *wait = malloc(sizeof *wait);
    REFUSE(!wait, CUDA_ERROR_OUT_OF_MEMORY);
    *wait = (struct wait){event->state, number};
    return stream_submit(stream, &waiting, wait);
}

BOTH(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
     flags > 1 ? CUDA_ERROR_INVALID_VALUE : wait_event(stream, per_thread, event))

/* --- between processes --- */

/* Real events live in files of /dev/shm: a process with another one does not find them. */
static void shm_identity(struct event_handle *handle) {
    struct stat status = {.st_dev = 0};
    stat("/dev/shm", &status);
    handle->shm_device = status.st_dev;
    handle->shm_inode = status.st_ino;
}

/* Of a destroyed event, too, whose shell still tells whether it had a slot. */
CUresult event_export(CUevent event, CUipcEventHandle *handle) {
    TRY(event->magic == EVENT_DEAD ? state_check() : check(event));
    REFUSE(!handle, CUDA_ERROR_INVALID_VALUE);
    REFUSE(event->slot == NO_SLOT || event->imported, CUDA_ERROR_INVALID_HANDLE);
    struct event_handle content = {.pid = (uint32_t)getpid(),
                                   .one = 1,
                                   .slot = (uint64_t)event->slot,
                                   .client = link_client(),
                                   .creator = (uint64_t)getpid()};
    shm_identity(&content);
    memcpy(handle->reserved, &content, sizeof content);
    return CUDA_SUCCESS;
}

static CUresult import(CUcontext context, int64_t slot, CUevent *out) {
    CUevent event = create(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, slot);
    REFUSE(!event, CUDA_ERROR_OUT_OF_MEMORY);
    event->imported = true;
    *out = event;
    return CUDA_SUCCESS;
}

CUresult event_of_nobody(CUcontext context, CUevent *out) {
    return import(context, NO_SLOT, out);
}

/* Whether the file of that pid, in which a creator's events live, is in this /dev/shm. */
static bool finds_file(const struct event_handle *content) {
    struct event_handle here = {0};
    shm_identity(&here);
    if (content->one != 1 || !content->pid)
        return false;
    return !content->creator ||
           (content->creator == content->pid && content->shm_device == here.shm_device &&
            content->shm_inode == here.shm_inode);
}

CUresult event_import(CUcontext context, const CUipcEventHandle *handle, CUevent *out) {
    struct event_handle content;
    memcpy(&content, handle->reserved, sizeof content);
    /* As with memory: an equal pid is taken for the own. */
    REFUSE(content.one == 1 && content.pid == (uint32_t)getpid(), CUDA_ERROR_INVALID_CONTEXT);
    REFUSE(!finds_file(&content), CUDA_ERROR_MAP_FAILED);
    struct sim_request request = {.op = SIM_EVENT_OPEN, .a = content.client, .b = content.slot};
    return link_call(&request, NULL) ? CUDA_ERROR_INVALID_HANDLE
                                     : import(context, (int64_t)content.slot, out);
}
