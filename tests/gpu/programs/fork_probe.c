/*
 * fork_probe.c - how a forked child ends by exit() whose parent has used the driver so and so.
 * Of the driver API alone. Prints a line a case: what the parent has | how the child ended.
 */
#include "../../common/system_headers.h"
#include <cuda.h>

#define SIZE ((size_t)8 << 20)

static const char nothing[] = ".version 7.0\n"
                              ".target sm_70\n"
                              ".address_size 64\n"
                              ".visible .entry nothing() {\n"
                              "ret; }\n";

static CUdevice device;
static CUcontext context;
static CUmemGenericAllocationHandle block, imported;
static CUdeviceptr at, plain;
static CUstream stream;
static CUmodule module;
static int descriptor = -1;
static void *host;

static int must(CUresult code) {
    return (int)code;
}

#define STEP(name, call)                                                                           \
    static int name(void) {                                                                        \
        return must(call);                                                                         \
    }

static int begin(void) {
    return must(cuInit(0)) || must(cuDeviceGet(&device, 0)) ||
           must(cuDevicePrimaryCtxRetain(&context, device)) || must(cuCtxSetCurrent(context));
}

STEP(malloc_it, cuMemAlloc(&plain, SIZE))

static int create(void) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return must(cuMemCreate(&block, SIZE, &prop, 0));
}

STEP(reserve, cuMemAddressReserve(&at, SIZE, 0, 0, 0))
STEP(map, cuMemMap(at, SIZE, 0, block, 0))

static int give_access(void) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return must(cuMemSetAccess(at, SIZE, &access, 1));
}

STEP(let_go, cuMemRelease(block))
STEP(unmap, cuMemUnmap(at, SIZE))
STEP(give_back, cuMemAddressFree(at, SIZE))
STEP(export_it,
     cuMemExportToShareableHandle(&descriptor, block, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))

static int close_it(void) {
    return close(descriptor);
}

STEP(import_it, cuMemImportFromShareableHandle(&imported, (void *)(long)descriptor,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
STEP(map_imported, cuMemMap(at, SIZE, 0, imported, 0))
STEP(let_imported_go, cuMemRelease(imported))
STEP(make_stream, cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0))
STEP(load, cuModuleLoadData(&module, nothing))

static int launch(void) {
    CUfunction function;
    return must(cuModuleGetFunction(&function, module, "nothing")) ||
           must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)) ||
           must(cuStreamSynchronize(stream));
}

STEP(pin, cuMemHostAlloc(&host, SIZE, 0))
STEP(set, cuMemsetD8(at, 1, SIZE))

static int relax(void) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return must(cuThreadExchangeStreamCaptureMode(&mode));
}

static int push_and_pop(void) {
    CUcontext popped;
    return must(cuCtxPushCurrent(context)) || must(cuCtxPopCurrent(&popped));
}

STEP(leave, cuCtxSetCurrent(NULL))

/* The thread's own default stream. */
static int copy_per_thread(void) {
    static char bytes[4096];
    CUresult (*copy)(void *, CUdeviceptr, size_t);
    CUdriverProcAddressQueryResult found;
    return must(cuGetProcAddress("cuMemcpyDtoH", (void **)&copy, 7000,
                                 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &found)) ||
           must(copy(bytes, plain, sizeof(bytes)));
}

static int set_per_thread(void) {
    return must(cuMemsetD8Async(plain, 1, SIZE, CU_STREAM_PER_THREAD)) ||
           must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void *other_thread(void *arg) {
    *(int *)arg = must(cuCtxSetCurrent(context)) || set_per_thread();
    return NULL;
}

static int set_in_another(void) {
    pthread_t thread;
    int code = 1;
    return pthread_create(&thread, NULL, other_thread, &code) != 0 ||
           pthread_join(thread, NULL) != 0 || code;
}

static int read_only(void) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    return must(cuMemSetAccess(at, SIZE, &access, 1));
}

static int upload(void) {
    static char bytes[SIZE];
    return must(cuMemcpyHtoD(plain, bytes, SIZE));
}

static int upload_on_stream(void) {
    static char bytes[SIZE];
    return must(cuMemcpyHtoDAsync(plain, bytes, SIZE, stream)) || must(cuStreamSynchronize(stream));
}

static int ask_legacy(void) {
    const CUresult code = cuStreamQuery(CU_STREAM_LEGACY);
    return code == CUDA_ERROR_NOT_READY ? 0 : must(code);
}

typedef int step(void);
static const struct {
    const char *name;
    step *steps[12];
} cases[] = {
    {"a context", {begin}},
    {"memory", {begin, malloc_it}},
    {"a block", {begin, create}},
    {"a block, released", {begin, create, let_go}},
    {"a reserved range", {begin, reserve}},
    {"a reserved range, given back", {begin, reserve, give_back}},
    {"a mapped block", {begin, create, reserve, map}},
    {"a mapped block with access", {begin, create, reserve, map, give_access}},
    {"the same, its handle released", {begin, create, reserve, map, give_access, let_go}},
    {"the same, written", {begin, create, reserve, map, give_access, let_go, set}},
    {"the same, unmapped", {begin, create, reserve, map, give_access, let_go, unmap}},
    {"the same, its range given back",
     {begin, create, reserve, map, give_access, let_go, unmap, give_back}},
    {"an exported block", {begin, create, export_it}},
    {"the same, its descriptor closed", {begin, create, export_it, close_it}},
    {"an imported block", {begin, create, export_it, import_it}},
    {"an imported block, mapped",
     {begin, create, export_it, import_it, close_it, reserve, map_imported, give_access}},
    {"the same, its handle released",
     {begin, create, export_it, import_it, close_it, let_go, reserve, map_imported, give_access,
      let_imported_go}},
    {"a stream", {begin, make_stream}},
    {"a module", {begin, load}},
    {"a stream and a module, launched", {begin, make_stream, load, launch}},
    {"pinned memory", {begin, pin}},
    {"the capture mode relaxed", {begin, relax}},
    {"a context pushed and popped", {begin, push_and_pop}},
    {"no current context", {begin, leave}},
    {"memory, copied on the thread's stream", {begin, malloc_it, copy_per_thread}},
    {"memory, set on the thread's stream", {begin, malloc_it, set_per_thread}},
    {"the same in a thread that has ended", {begin, malloc_it, set_in_another}},
    {"an imported block, read-only",
     {begin, create, export_it, import_it, close_it, let_go, reserve, map_imported, read_only}},
    {"a block in another's place",
     {begin, create, reserve, map, give_access, unmap, let_go, create, map, read_only, let_go}},
    {"memory, written from pageable memory", {begin, malloc_it, upload}},
    {"the same on a stream", {begin, malloc_it, make_stream, upload_on_stream}},
    {"the legacy stream asked", {begin, ask_legacy}},
};

static void on_crash(int number) {
    void *frames[48];
    backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
}

static int ended(pid_t child) {
    int status = 0;
    for (int i = 0; i < 300; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static void try(unsigned which) {
    for (unsigned i = 0; i < 12 && cases[which].steps[i]; i++) {
        const int code = cases[which].steps[i]();
        if (code) {
            printf("%-40s | step %u of the parent: code %d\n", cases[which].name, i, code);
            return;
        }
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
        sigaction(SIGSEGV, &action, NULL);
        exit(0);
    }
    const int status = ended(child);
    if (status == -1)
        printf("%-40s | hangs\n", cases[which].name);
    else if (WIFSIGNALED(status))
        printf("%-40s | signal %d\n", cases[which].name, WTERMSIG(status));
    else
        printf("%-40s | status %d\n", cases[which].name, WEXITSTATUS(status));
}

int main(void) {
    backtrace(&(void *){NULL}, 1);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const pid_t child = fork();
        if (child == 0) {
            try(i);
            fflush(stdout);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
