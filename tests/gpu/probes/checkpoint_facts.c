/*
 * checkpoint_facts.c - what cuCheckpointProcess* answers, and what becomes of the process and of
 * those that share with it. Each case has a target of its own: this program, started anew.
 *
 * Usage: checkpoint_facts [CASE]
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static const char spin_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 ns) { .reg .u64 %r<4>; .reg .pred %p;\n"
    "ld.param.u64 %r1, [ns]; mov.u64 %r2, %globaltimer; add.u64 %r2, %r2, %r1;\n"
    "again: mov.u64 %r3, %globaltimer; setp.lt.u64 %p, %r3, %r2; @%p bra again; ret; }\n";
static const CUmemLocation card = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
static CUcontext context;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin(void) {
    CUdevice device;
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
}

static void send_descriptor(int to, int descriptor) {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
    (void)!sendmsg(to, &message, 0);
}

static int receive_descriptor(int from) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    int descriptor = -1;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    if (recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(descriptor));
    return descriptor;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle) {
    const CUmemAccessDesc access = {.location = card, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;
    cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0);
    cuMemMap(at, 64 * MIB, 0, handle, 0);
    cuMemSetAccess(at, 64 * MIB, &access, 1);
    return at;
}

/* --- the target --- */

static void on_term_stay(int number) {
    (void)number;
    (void)!write(1, "  target: its handler ran\n", 26);
}

static void on_term_exit(int number) {
    (void)number;
    exit(7);
}

static void *wait_for_kernel(void *unused) {
    unsigned long ns = 3000000000;
    void *arguments[] = {&ns};
    CUmodule module;
    CUfunction spin;
    CUstream stream;
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, spin_ptx);
    cuModuleGetFunction(&spin, module, "spin");
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
    const double begun = seconds();
    const int code = cuStreamSynchronize(stream);
    printf("  target: its wait for a kernel of 3 s: %d after %.2f s\n", code, seconds() - begun);
    return unused;
}

static void *allocate_and_free(void *unused) {
    CUdeviceptr memory;
    cuCtxSetCurrent(context);
    while (cuMemAlloc(&memory, MIB) == CUDA_SUCCESS) {
        cuMemFree(memory);
        usleep(1000);
    }
    puts("  target: an allocation failed");
    return unused;
}

static int target(const char *kind, int peer) {
    CUdeviceptr memory, made = 0;
    CUevent event = NULL;
    pthread_t thread;
    char command;
    begin();
    cuMemAlloc(&memory, 256 * MIB);
    cuMemsetD8(memory, 5, 256 * MIB);
    if (!strcmp(kind, "made")) {
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes =
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = card};
        CUmemGenericAllocationHandle handle;
        int descriptor;
        cuMemCreate(&handle, 64 * MIB, &prop, 0);
        made = map(handle);
        cuMemsetD8(made, 9, 64 * MIB);
        cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                     0);
        send_descriptor(peer, descriptor);
        close(descriptor);
    } else if (!strcmp(kind, "legacy")) {
        CUipcMemHandle handle;
        cuIpcGetMemHandle(&handle, memory);
        (void)!write(peer, &handle, sizeof(handle));
    } else if (!strcmp(kind, "event")) {
        CUipcEventHandle handle;
        cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
        cuIpcGetEventHandle(&handle, event);
        (void)!write(peer, &handle, sizeof(handle));
    } else if (!strcmp(kind, "waits")) {
        pthread_create(&thread, NULL, wait_for_kernel, NULL);
        usleep(300000);
    } else if (!strcmp(kind, "allocates")) {
        pthread_create(&thread, NULL, allocate_and_free, NULL);
    } else if (!strcmp(kind, "handles SIGTERM")) {
        signal(SIGTERM, on_term_stay);
    } else if (!strcmp(kind, "exits in SIGTERM")) {
        signal(SIGTERM, on_term_exit);
    }
    (void)!write(peer, "r", 1);
    while (read(peer, &command, 1) == 1) {
        unsigned char byte = 0;
        const int code = cuMemcpyDtoH(&byte, memory + 128 * MIB, 1);
        printf("  target: a copy %d, the byte %d\n", code, byte);
        if (made)
            printf("  target: a write into what it made: %d\n", cuMemsetD8(made, 11, 64 * MIB));
        if (event)
            printf("  target: record %d, query %d\n", cuEventRecord(event, 0), cuEventQuery(event));
        cuCtxSynchronize();
        (void)!write(peer, "r", 1);
    }
    _exit(0);
}

/* --- whoever checkpoints it --- */

static char self[4096];
static int channel;

static int state(int pid) {
    CUprocessState now = 0;
    const int code = cuCheckpointProcessGetState(pid, &now);
    return code ? -code : (int)now;
}

static int lock(int pid, unsigned milliseconds) {
    CUcheckpointLockArgs limit = {.timeoutMs = milliseconds};
    return cuCheckpointProcessLock(pid, &limit);
}

static size_t free_bytes(void) {
    size_t bytes, all;
    cuMemGetInfo(&bytes, &all);
    return bytes;
}

static bool answers(void) {
    const struct timeval limit = {.tv_sec = 5};
    char byte;
    setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return read(channel, &byte, 1) == 1;
}

static int start(const char *kind) {
    int pair[2];
    printf("== a process that: %s\n", kind);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    const int pid = fork();
    if (pid == 0) {
        char number[12];
        snprintf(number, sizeof(number), "%d", pair[1]);
        close(pair[0]);
        execl(self, self, kind, number, (char *)NULL);
        _exit(9);
    }
    close(pair[1]);
    channel = pair[0];
    return pid;
}

static void verify(void) {
    (void)!write(channel, "v", 1);
    if (!answers())
        puts("  target: no answer within 5 s");
}

static void end(int pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(channel);
}

static void suspend(int pid) {
    double begun = seconds();
    const int locked = lock(pid, 5000);
    printf("  lock %d (%.3f s)", locked, seconds() - begun);
    begun = seconds();
    CUcheckpointCheckpointArgs none = {0};
    const int code = cuCheckpointProcessCheckpoint(pid, &none);
    printf(", checkpoint %d (%.3f s), state %d\n", code, seconds() - begun, state(pid));
}

static void resume(int pid) {
    const double begun = seconds();
    CUcheckpointRestoreArgs none = {0};
    CUcheckpointUnlockArgs nothing = {0};
    const int code = cuCheckpointProcessRestore(pid, &none);
    printf("  restore %d (%.3f s)", code, seconds() - begun);
    const int unlocked = cuCheckpointProcessUnlock(pid, &nothing);
    printf(", unlock %d, state %d\n", unlocked, state(pid));
}

static void suspend_and_resume(int pid) {
    suspend(pid);
    resume(pid);
    verify();
    end(pid);
}

static void ask_room(void) {
    static CUdeviceptr taken[8192];
    const int pid = start("has 256 MiB");
    size_t count = 0;
    answers();
    suspend(pid);
    while (count < 8192 && cuMemAlloc(&taken[count], 64 * MIB) == CUDA_SUCCESS)
        count++;
    printf("  %zu MiB are free\n", free_bytes() / MIB);
    resume(pid);
    while (count > 0)
        cuMemFree(taken[--count]);
    printf("  %zu MiB are free\n", free_bytes() / MIB);
    resume(pid);
    verify();
    end(pid);
}

static void ask_made(void) {
    CUmemGenericAllocationHandle handle;
    unsigned char byte = 0;
    const int pid = start("made");
    const int descriptor = receive_descriptor(channel);
    cuMemImportFromShareableHandle(&handle, (void *)(long)descriptor,
                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const CUdeviceptr at = map(handle);
    answers();
    suspend(pid);
    resume(pid);
    verify();
    const int code = cuMemcpyDtoH(&byte, at, 1);
    printf("  the importer's copy: %d, the byte %d (11: one memory still)\n", code, byte);
    end(pid);
    close(descriptor);
}

static void ask_legacy(void) {
    CUipcMemHandle handle;
    CUdeviceptr at;
    const int pid = start("legacy");
    (void)!read(channel, &handle, sizeof(handle));
    answers();
    printf("  open: %d\n", cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    suspend(pid);
    resume(pid);
    verify();
    printf("  the importer's close: %d", cuIpcCloseMemHandle(at));
    printf(", another open: %d\n",
           cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    end(pid);
}

static void ask_event(void) {
    CUipcEventHandle handle;
    CUevent event;
    const int pid = start("event");
    (void)!read(channel, &handle, sizeof(handle));
    answers();
    printf("  open: %d\n", cuIpcOpenEventHandle(&event, handle));
    suspend_and_resume(pid);
    printf("  the importer's query: %d\n", cuEventQuery(event));
}

static void ask_threads(void) {
    int pid = start("waits");
    answers();
    suspend_and_resume(pid);
    pid = start("allocates");
    answers();
    suspend_and_resume(pid);
    pid = start("waits");
    answers();
    const double begun = seconds();
    printf("  lock with a limit of 300 ms: %d", lock(pid, 300));
    printf(" after %.2f s, state %d\n", seconds() - begun, state(pid));
    verify();
    end(pid);
}

static void ask_signals(void) {
    static const char *const kinds[] = {"does nothing of it", "handles SIGTERM",
                                        "exits in SIGTERM"};
    for (int i = 0; i < 6; i++) {
        int status, waited = 0;
        const int pid = start(kinds[i % 3]);
        answers();
        if (i < 3)
            suspend(pid);
        else
            printf("  lock %d\n", lock(pid, 5000));
        kill(pid, SIGTERM);
        while (waitpid(pid, &status, WNOHANG) == 0 && waited++ < 30)
            usleep(100000);
        if (waited > 30)
            puts("  SIGTERM: it has not ended after 3 s");
        else
            printf("  SIGTERM: it ended with status %#x\n", status);
        end(pid);
        printf("  after SIGKILL %zu MiB are free, state %d\n", free_bytes() / MIB, state(pid));
    }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*ask)(void);
    } cases[] = {{"room", ask_room},   {"made", ask_made},       {"legacy", ask_legacy},
                 {"event", ask_event}, {"threads", ask_threads}, {"signals", ask_signals}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 3)
        return target(arguments[1], atoi(arguments[2]));
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 1;
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (count < 2 || !strcmp(arguments[1], cases[i].name))
            cases[i].ask();
    return 0;
}
