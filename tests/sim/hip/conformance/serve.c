/* What a peer does for each op of peer.h. Runs in the peer, the only place that calls the runtime.
 */
#include "hip.h"

#include "../../conformance/peer.h"

#define POINTER(n) ((void *)(uintptr_t)(n))

static int start(struct message *m) {
    int count = 0;
    const int code = hip.hipGetDeviceCount(&count);
    return code || count > 0 ? code : -1;
}

static int allocate(struct message *m) {
    void *pointer = NULL;
    const int code = hip.hipMalloc(&pointer, m->n[0]);
    m->n[0] = (uint64_t)(uintptr_t)pointer;
    return code;
}

#define SERVE(name, call)                                                                          \
    static int name(struct message *m) {                                                           \
        return call;                                                                               \
    }
SERVE(release, hip.hipFree(POINTER(m->n[0])))

static int fill(struct message *m) {
    const int code = hip.hipMemset(POINTER(m->n[0]), (int)m->n[2], m->n[1]);
    return code ? code : hip.hipDeviceSynchronize();
}

static int read_byte(struct message *m) {
    enum { DEVICE_TO_HOST = 2 };
    unsigned char byte = 0;
    const int code = hip.hipMemcpy(&byte, POINTER(m->n[0]), 1, DEVICE_TO_HOST);
    m->n[0] = byte;
    return code;
}

static int get(struct message *m) {
    hipIpcMemHandle_t handle;
    memset(&handle, 0, sizeof handle);
    const int code = hip.hipIpcGetMemHandle(&handle, POINTER(m->n[0]));
    memcpy(m->bytes, &handle, sizeof handle);
    return code;
}

static int open_handle(struct message *m) {
    hipIpcMemHandle_t handle;
    void *pointer = NULL;
    memcpy(&handle, m->bytes, sizeof handle);
    const int code = hip.hipIpcOpenMemHandle(&pointer, handle, hip_flags());
    m->n[0] = (uint64_t)(uintptr_t)pointer;
    return code;
}

SERVE(close_handle, hip.hipIpcCloseMemHandle(POINTER(m->n[0])))

static int range(struct message *m) {
    hipDeviceptr_t base = NULL;
    size_t size = 0;
    const int code = hip.hipMemGetAddressRange(&base, &size, POINTER(m->n[0]));
    m->n[0] = (uint64_t)(uintptr_t)base;
    m->n[1] = size;
    return code;
}

/* -> n[0] its kind, n[1] its device */
static int attribute(struct message *m) {
    hipPointerAttribute_t told;
    memset(&told, 0xff, sizeof told);
    const int code = hip.hipPointerGetAttributes(&told, POINTER(m->n[0]));
    m->n[0] = (uint64_t)told.type;
    m->n[1] = (uint64_t)told.device;
    return code;
}

static int reset(struct message *m) {
    return hip.hipDeviceReset();
}

static int forked(struct message *m) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        void *pointer;
        _exit(hip.hipMalloc(&pointer, SIZE) & 0xff);
    }
    const int ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    m->n[0] = (uint64_t)(ended ? WEXITSTATUS(status) : -1);
    return 0;
}

static int new_event(struct message *m) {
    hipEvent_t event = NULL;
    const int code = hip.hipEventCreateWithFlags(&event, (unsigned)m->n[0]);
    m->n[0] = (uint64_t)(uintptr_t)event;
    return code;
}

static int get_event(struct message *m) {
    hipIpcEventHandle_t handle;
    memset(&handle, 0, sizeof handle);
    const int code = hip.hipIpcGetEventHandle(&handle, POINTER(m->n[0]));
    memcpy(m->bytes, &handle, sizeof handle);
    return code;
}

static int open_event(struct message *m) {
    hipIpcEventHandle_t handle;
    hipEvent_t event = NULL;
    memcpy(&handle, m->bytes, sizeof handle);
    const int code = hip.hipIpcOpenEventHandle(&event, handle);
    m->n[0] = (uint64_t)(uintptr_t)event;
    return code;
}

SERVE(record, hip.hipEventRecord(POINTER(m->n[0]), NULL))
SERVE(query, hip.hipEventQuery(POINTER(m->n[0])))
SERVE(destroy_event, hip.hipEventDestroy(POINTER(m->n[0])))

static int (*const actions[OPS])(struct message *) = {
    [OP_START] = start,         [OP_ALLOC] = allocate,      [OP_FREE] = release,
    [OP_FILL] = fill,           [OP_READ] = read_byte,      [OP_GET] = get,
    [OP_OPEN] = open_handle,    [OP_CLOSE] = close_handle,  [OP_RANGE] = range,
    [OP_ATTRIBUTE] = attribute, [OP_RESET] = reset,         [OP_FORKED] = forked,
    [OP_EVENT] = new_event,     [OP_EVENT_GET] = get_event, [OP_EVENT_OPEN] = open_event,
    [OP_RECORD] = record,       [OP_QUERY] = query,         [OP_EVENT_DESTROY] = destroy_event,
};

void peer_serve(int from, int to) {
    struct message message;
    while (read(from, &message, sizeof message) == sizeof message && message.op != OP_EXIT) {
        message.code = actions[message.op](&message);
        if (write(to, &message, sizeof message) != sizeof message)
            break;
    }
}
