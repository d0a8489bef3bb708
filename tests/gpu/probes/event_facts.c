/*
 * event_facts.c - what a driver answers about events of other processes, their handles, and events
 * that are destroyed.
 *
 *   cc -std=gnu11 -O1 event_facts.c -o event_facts -lcuda && ./event_facts
 *
 * Each step that may end its process runs in one of its own, which is made before CUDA is used. See
 * README.md for what was recorded.
 */
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARED = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, HANDLES = 4 };

static void begin(void) {
    CUdevice device;
    CUcontext context;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context))
        exit(9);
}

static CUevent made(unsigned flags) {
    CUevent event = NULL;
    if (cuEventCreate(&event, flags))
        exit(8);
    return event;
}

static void print_handle(const char *what, const CUipcEventHandle *handle) {
    printf("%-28s", what);
    for (unsigned i = 0; i < sizeof(handle->reserved); i++)
        printf("%s%02x", i % 8 ? "" : " ", (unsigned char)handle->reserved[i]);
    printf("\n");
    fflush(stdout);
}

/* --- one step in a process of its own --- */

static void step(const char *name, void (*run)(void)) {
    int status;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        begin();
        alarm(20);
        printf("%-44s", name);
        fflush(stdout);
        run();
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf(WIFSIGNALED(status) ? " ended by signal %d\n" : "\n", WTERMSIG(status));
    fflush(stdout);
}

static unsigned flags;
static CUevent destroyed(void) {
    CUevent event = made(flags);
    printf(" destroy %d;", cuEventDestroy(event));
    fflush(stdout);
    return event;
}
static void again(void) {
    printf(" destroy %d", cuEventDestroy(destroyed()));
}
static void query(void) {
    printf(" query %d", cuEventQuery(destroyed()));
}
static void record(void) {
    printf(" record %d", cuEventRecord(destroyed(), NULL));
}
static void synchronize(void) {
    printf(" synchronize %d", cuEventSynchronize(destroyed()));
}
static void await(void) {
    printf(" wait %d", cuStreamWaitEvent(NULL, destroyed(), 0));
}
static void elapsed(void) {
    float ms;
    CUevent other = made(0);
    printf(" elapsed %d", cuEventElapsedTime(&ms, destroyed(), other));
}
static void handle(void) {
    CUipcEventHandle got;
    printf(" get handle %d", cuIpcGetEventHandle(&got, destroyed()));
}
static void null_event(void) {
    CUipcEventHandle got;
    printf(" get handle %d", cuIpcGetEventHandle(&got, NULL));
}
static void null_handle(void) {
    printf(" get handle %d", cuIpcGetEventHandle(NULL, made(SHARED)));
}
static void null_out(void) {
    CUipcEventHandle got;
    cuIpcGetEventHandle(&got, made(SHARED));
    printf(" open %d", cuIpcOpenEventHandle(NULL, got));
}

/* --- two processes --- */

static int channel[2];

static void take(void *bytes, size_t size) {
    if (recv(channel[1], bytes, size, MSG_WAITALL) != (ssize_t)size)
        exit(7);
}
static void send_to(const void *bytes, size_t size) {
    if (send(channel[0], bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        exit(7);
}

/* Answers of every kind for one that was opened. */
static void use(const char *what, const CUipcEventHandle *from) {
    CUevent event = NULL;
    CUipcEventHandle got;
    const int code = cuIpcOpenEventHandle(&event, *from);
    printf("%-36s open %d", what, code);
    fflush(stdout);
    if (code == 0) {
        printf(", query %d", cuEventQuery(event));
        printf(", get handle %d", cuIpcGetEventHandle(&got, event));
        printf(", wait %d", cuStreamWaitEvent(NULL, event, 0));
        printf(", record %d", cuEventRecord(event, NULL));
        printf(", synchronize %d", cuEventSynchronize(event));
        printf(", destroy %d", cuEventDestroy(event));
    }
    printf("\n");
    fflush(stdout);
}

static void exporter(int second) {
    CUipcEventHandle handles[HANDLES];
    CUevent events[HANDLES];
    CUdeviceptr memory;
    CUipcMemHandle of_memory;
    char name[32];
    begin();
    for (int i = 0; i < HANDLES; i++) {
        events[i] = made(SHARED);
        cuIpcGetEventHandle(&handles[i], events[i]);
        snprintf(name, sizeof(name), "%s event %d", second ? "second's" : "first's", i);
        print_handle(name, &handles[i]);
    }
    if (second)
        return;
    cuMemAlloc(&memory, 4 << 20);
    cuIpcGetMemHandle(&of_memory, memory);
    cuEventDestroy(events[1]);
    send_to(handles, sizeof(handles));
    send_to(&of_memory, sizeof(of_memory));
    char byte;
    recv(channel[0], &byte, 1, 0);
    exit(0);
}

static void importer(void) {
    CUipcEventHandle handles[HANDLES], torn;
    CUipcMemHandle of_memory;
    int codes[64];
    take(handles, sizeof(handles));
    take(&of_memory, sizeof(of_memory));
    use("live", &handles[0]);
    use("destroyed by its creator", &handles[1]);
    memcpy(&torn, &of_memory, sizeof(torn));
    use("a memory handle", &torn);
    for (int i = 0; i < 64; i++) {
        CUevent event;
        torn = handles[0];
        torn.reserved[i] ^= 0x41;
        codes[i] = cuIpcOpenEventHandle(&event, torn);
    }
    printf("one byte changed, by its place:");
    for (int i = 0; i < 64; i++)
        printf(" %d", codes[i]);
    printf("\n");
    for (int cut = 8; cut < 64; cut += 8) {
        char name[32];
        torn = handles[0];
        memset(torn.reserved + cut, 0, (size_t)(64 - cut));
        snprintf(name, sizeof(name), "zeros from byte %d", cut);
        use(name, &torn);
    }
    send(channel[1], "", 1, MSG_NOSIGNAL);
}

/* Memory that takes the place of what is freed and still open here. */
static void place_exporter(void) {
    CUdeviceptr small[3];
    CUipcMemHandle handle;
    char byte;
    begin();
    for (int i = 0; i < 3; i++)
        cuMemAlloc(&small[i], 1024);
    cuIpcGetMemHandle(&handle, small[1]);
    send_to(&handle, sizeof(handle));
    recv(channel[0], &byte, 1, 0);
    cuMemFree(small[1]);
    cuMemAlloc(&small[1], 512);
    cuIpcGetMemHandle(&handle, small[1]);
    send_to(&handle, sizeof(handle));
    recv(channel[0], &byte, 1, 0);
    exit(0);
}

static void place_importer(void) {
    CUipcMemHandle handle;
    CUdeviceptr first = 0, second = 0;
    take(&handle, sizeof(handle));
    const int one = cuIpcOpenMemHandle(&first, handle, 1);
    send(channel[1], "", 1, MSG_NOSIGNAL);
    take(&handle, sizeof(handle));
    const int two = cuIpcOpenMemHandle(&second, handle, 1);
    printf("open, freed and made again smaller, open: %d, %d; close %d", one, two,
           cuIpcCloseMemHandle(first));
    printf(", open then %d\n", cuIpcOpenMemHandle(&second, handle, 1));
    send(channel[1], "", 1, MSG_NOSIGNAL);
}

static void pair(void (*first)(void), void (*second)(void)) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, channel);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        first();
    const pid_t other = fork();
    if (other == 0) {
        begin();
        second();
        fflush(stdout);
        _exit(0);
    }
    waitpid(other, NULL, 0);
    waitpid(pid, NULL, 0);
}

static void first_exporter(void) {
    exporter(0);
}

/* The creator has ended before the handle is opened. */
static void dead_exporter(void) {
    CUipcEventHandle handle;
    begin();
    cuIpcGetEventHandle(&handle, made(SHARED));
    send_to(&handle, sizeof(handle));
    _exit(0);
}
static void dead_importer(void) {
    CUipcEventHandle handle;
    take(&handle, sizeof(handle));
    usleep(300000);
    use("its creator has ended", &handle);
}

int main(void) {
    static void (*const runs[])(void) = {again, query, record, synchronize, await, elapsed, handle};
    static const char *const names[] = {"destroy", "query",   "record",    "synchronize",
                                        "wait",    "elapsed", "get handle"};
    char name[64];
    for (unsigned shared = 0; shared < 2; shared++) {
        flags = shared ? SHARED : CU_EVENT_DISABLE_TIMING;
        for (unsigned i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
            snprintf(name, sizeof(name), "%s, destroyed before: %s", shared ? "shared" : "private",
                     names[i]);
            step(name, runs[i]);
        }
    }
    step("handle of no event", null_event);
    step("handle to nowhere", null_handle);
    step("open to nowhere", null_out);
    const pid_t pid = fork();
    if (pid == 0) {
        exporter(1);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    pair(first_exporter, importer);
    pair(dead_exporter, dead_importer);
    pair(place_exporter, place_importer);
    return 0;
}
