/*
 * vmm_probe.c - questions to the driver about VMM memory, of which the shim leans on the answers.
 * Of the driver API alone. Prints a line a step: what was asked | the code, and what was seen.
 *
 * usage: vmm_probe             all steps; a step that fails stops its question, not the others
 *        vmm_probe open HEX    opens these 64 handle bytes, as a program without the shim would
 */
#include "../../common/system_headers.h"
#include <cuda.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Newer than some headers. */
enum { USAGE_HW_DECOMPRESS = 2 };
#define IS_HW_DECOMPRESS_CAPABLE ((CUpointer_attribute)21)

/* Keeps a card busy for so many nanoseconds; writes all the time where `at` is not null. */
static const char spin[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry spin(.param .u64 span, .param .u64 at) {\n"
                           ".reg .pred p, q;\n"
                           ".reg .u64 a, b, c, d;\n"
                           "ld.param.u64 c, [span];\n"
                           "ld.param.u64 d, [at];\n"
                           "setp.ne.u64 q, d, 0;\n"
                           "mov.u64 a, %globaltimer;\n"
                           "again: mov.u64 b, %globaltimer;\n"
                           "@q st.volatile.global.u64 [d], b;\n"
                           "sub.u64 b, b, a;\n"
                           "setp.lt.u64 p, b, c;\n"
                           "@p bra again;\n"
                           "ret; }\n";

static CUdevice device;
static CUcontext context;
static size_t granule;

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static CUresult say(const char *step, CUresult code) {
    printf("%-66s | %d\n", step, (int)code);
    fflush(stdout);
    return code;
}

static void note(const char *what, double value, const char *unit) {
    printf("%-66s | %.3f %s\n", what, value, unit);
    fflush(stdout);
}

static CUmemAllocationProp properties(void) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static CUresult create(size_t size, CUmemGenericAllocationHandle *block) {
    const CUmemAllocationProp prop = properties();
    return cuMemCreate(block, size, &prop, 0);
}

static CUresult give_access_to(int card, CUdeviceptr at, size_t size) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = card},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(at, size, &access, 1);
}

static CUresult give_access(CUdeviceptr at, size_t size) {
    return give_access_to(device, at, size);
}

/* Reserves, maps the beginning of the block, gives access; the first code that is not 0. */
static CUresult map(size_t size, CUmemGenericAllocationHandle block, CUdeviceptr *at) {
    CUresult code = cuMemAddressReserve(at, size, 0, 0, 0);
    if (code == CUDA_SUCCESS)
        code = cuMemMap(*at, size, 0, block, 0);
    return code == CUDA_SUCCESS ? give_access(*at, size) : code;
}

static void unmap(CUdeviceptr at, size_t size) {
    say("    unmap", cuMemUnmap(at, size));
    say("    free the address", cuMemAddressFree(at, size));
}

static void fill(CUdeviceptr at, unsigned char byte) {
    say("    memset", cuMemsetD8(at, byte, granule));
    say("    synchronize", (cuCtxSynchronize)());
}

static void look(const char *what, CUdeviceptr at) {
    unsigned char byte = 0;
    const CUresult code = cuMemcpyDtoH(&byte, at, 1);
    printf("%-66s | %d, 0x%02x\n", what, (int)code, byte);
    fflush(stdout);
}

static CUresult import(int descriptor, CUmemGenericAllocationHandle *block) {
    return cuMemImportFromShareableHandle(block, (void *)(intptr_t)descriptor,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static CUresult export(CUmemGenericAllocationHandle block, int *descriptor) {
    return cuMemExportToShareableHandle(descriptor, block, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                        0);
}

static void export_again(void) {
    CUmemGenericAllocationHandle block, first, second;
    CUdeviceptr mine = 0, other = 0;
    int one = -1, two = -1;
    if (say("a: create", create(granule, &block)) || say("a: map", map(granule, block, &mine)))
        return;
    fill(mine, 0x5a);
    if (say("a: export", export(block, &one)) || say("a: import it", import(one, &first)) ||
        say("a: export what was imported", export(first, &two)) ||
        say("a: import that", import(two, &second)) ||
        say("a: map it", map(granule, second, &other)))
        return;
    look("a: its first byte; 0x5a was written", other);
    say("a: release the first import", cuMemRelease(first));
    look("a: its first byte after that", other);
    unmap(other, granule);
    unmap(mine, granule);
    say("a: release the second import", cuMemRelease(second));
    say("a: release the block", cuMemRelease(block));
    close(one);
    close(two);
}

static void map_a_half(void) {
    CUmemGenericAllocationHandle block;
    CUdeviceptr at = 0;
    if (say("b: create two granules", create(2 * granule, &block)))
        return;
    say("b: reserve one granule", cuMemAddressReserve(&at, granule, 0, 0, 0));
    if (say("b: map the first half of the block", cuMemMap(at, granule, 0, block, 0)) == 0) {
        say("b: give access", give_access(at, granule));
        fill(at, 1);
        unmap(at, granule);
    }
    say("b: release", cuMemRelease(block));
}

static void without_context(void) {
    CUmemGenericAllocationHandle block;
    CUcontext popped;
    CUdeviceptr at = 0;
    int descriptor = -1;
    say("c: pop the context", cuCtxPopCurrent(&popped));
    if (say("c: create", create(granule, &block)) == 0) {
        say("c: reserve", cuMemAddressReserve(&at, granule, 0, 0, 0));
        say("c: map", cuMemMap(at, granule, 0, block, 0));
        say("c: give access", give_access(at, granule));
        say("c: export", export(block, &descriptor));
        unmap(at, granule);
        say("c: release", cuMemRelease(block));
        close(descriptor);
    }
    say("c: push the context", cuCtxPushCurrent(popped));
}

static CUresult start_spinning(CUstream stream, unsigned long long nanoseconds, CUdeviceptr at) {
    CUmodule module;
    CUfunction kernel;
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *get;
    __typeof__(cuLaunchKernel) *launch;
    void *arguments[] = {&nanoseconds, &at};
    *(void **)(void *)&load = dlsym(RTLD_DEFAULT, "cuModuleLoadData");
    *(void **)(void *)&get = dlsym(RTLD_DEFAULT, "cuModuleGetFunction");
    *(void **)(void *)&launch = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    if (!load || !get || !launch)
        return CUDA_ERROR_NOT_SUPPORTED; /* the simulator has no kernels */
    CUresult code = load(&module, spin);
    if (code == CUDA_SUCCESS)
        code = get(&kernel, module, "spin");
    return code ? code : launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

/* Is the memory of a mapping replaced while a kernel runs that does not use it? */
static void remap_beside_a_kernel(void) {
    CUmemGenericAllocationHandle old, new;
    CUdeviceptr at = 0, other = 0;
    CUstream stream;
    if (say("d: create", create(granule, &old)) ||
        say("d: create another", create(granule, &new)) || say("d: map", map(granule, old, &at)) ||
        say("d: map the other", map(granule, new, &other)))
        return;
    fill(at, 0x11);
    fill(other, 0x22);
    unmap(other, granule);
    say("d: a stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (say("d: a kernel of 300 ms", start_spinning(stream, 300000000, 0)))
        return;
    const double start = milliseconds();
    say("d: unmap beside it", cuMemUnmap(at, granule));
    note("d:     which took", milliseconds() - start, "ms");
    say("d: map the other block there", cuMemMap(at, granule, 0, new, 0));
    say("d: give access", give_access(at, granule));
    note("d: all of it took", milliseconds() - start, "ms");
    say("d: is the kernel still running (600)", cuStreamQuery(stream));
    say("d: wait for it", cuStreamSynchronize(stream));
    look("d: the first byte there; the other's is 0x22", at);
    unmap(at, granule);
    say("d: release both", cuMemRelease(old) ? CUDA_ERROR_UNKNOWN : cuMemRelease(new));
    say("d: destroy the stream", cuStreamDestroy(stream));
}

/* Is work hurt that uses memory to which another card gets access meanwhile? */
static CUresult allow_beside(bool fills, CUstream stream, CUresult *allowed) {
    const size_t size = fills ? GIB : granule;
    CUmemGenericAllocationHandle block;
    CUdeviceptr at = 0;
    CUresult code = create(size, &block);
    code = code ? code : map(size, block, &at);
    for (int i = 0; !code && i < 20 && fills; i++)
        code = cuMemsetD8Async(at, 1, size, stream);
    if (!code && !fills)
        code = start_spinning(stream, 20000000, at);
    usleep(3000);
    *allowed = give_access_to(1, at, size);
    code = code ? code : cuStreamSynchronize(stream);
    cuMemUnmap(at, size);
    cuMemAddressFree(at, size);
    cuMemRelease(block);
    return code;
}

static void allow_another_card(void) {
    CUstream stream;
    CUresult allowed = CUDA_SUCCESS, code = CUDA_SUCCESS;
    int cards = 0;
    if (cuDeviceGetCount(&cards) || cards < 2 ||
        say("h: a stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    for (int round = 0; !code && round < 32; round++) {
        code = allow_beside(round % 2, stream, &allowed);
        printf("h: %-63s | %d, allowed %d\n",
               round % 2 ? "another card's access beside fills" : "... beside a kernel that writes",
               (int)code, (int)allowed);
    }
}

static CUresult open_bytes(const CUipcMemHandle *handle) {
    CUdeviceptr at = 0;
    return cuIpcOpenMemHandle(&at, *handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static void open_token(void) {
    CUipcMemHandle token = {"GPSTOKEN"};
    for (size_t i = 16; i < sizeof(token.reserved); i++)
        token.reserved[i] = (char)(i * 167 + 13);
    say("e: open a token", open_bytes(&token));
}

static void time_copy(const char *what, CUdeviceptr at, void *host) {
    if (!host || cuMemcpyDtoH(host, at, GIB) != CUDA_SUCCESS)
        return;
    const double start = milliseconds();
    const CUresult code = cuMemcpyDtoH(host, at, GIB);
    note(what, milliseconds() - start, code ? "ms, failed" : "ms");
}

static void times(void) {
    CUmemGenericAllocationHandle block;
    CUdeviceptr at = 0;
    void *pinned = NULL, *pageable = malloc(GIB);
    double start = milliseconds();
    const CUresult code = create(8 * GIB, &block);
    note("f: create 8 GiB", milliseconds() - start, code ? "ms, failed" : "ms");
    if (code)
        return free(pageable);
    start = milliseconds();
    const CUresult mapped = map(8 * GIB, block, &at);
    note("f: reserve, map, give access to 8 GiB", milliseconds() - start,
         mapped ? "ms, failed" : "ms");
    time_copy("f: 1 GiB from the card, pageable", at, pageable);
    if (cuMemAllocHost(&pinned, GIB) == CUDA_SUCCESS)
        time_copy("f: 1 GiB from the card, pinned", at, pinned);
    if (pinned)
        cuMemFreeHost(pinned);
    free(pageable);
    start = milliseconds();
    cuMemUnmap(at, 8 * GIB);
    cuMemRelease(block);
    note("f: unmap and release 8 GiB", milliseconds() - start, "ms");
    cuMemAddressFree(at, 8 * GIB);
}

static void decompressible(const char *what, CUdeviceptr at) {
    int capable = -1;
    const CUresult code = cuPointerGetAttribute(&capable, IS_HW_DECOMPRESS_CAPABLE, at);
    printf("%-66s | %d, %d\n", what, (int)code, capable);
    fflush(stdout);
}

/* Memory of cudaMalloc says 1 here, of cuMemCreate 0 (recorded on an H200): what makes it 1? */
static void with_decompression(void) {
    CUmemGenericAllocationHandle block, imported;
    CUmemAllocationProp prop = properties();
    CUdeviceptr mine = 0, other = 0;
    int descriptor = -1;
    prop.allocFlags.usage = USAGE_HW_DECOMPRESS;
    if (say("g: create, for decompression", cuMemCreate(&block, granule, &prop, 0)))
        return;
    say("g: map", map(granule, block, &mine));
    decompressible("g: is it decompressible", mine);
    say("g: export", export(block, &descriptor));
    say("g: import", import(descriptor, &imported));
    say("g: map what was imported", map(granule, imported, &other));
    decompressible("g: is that decompressible", other);
    unmap(other, granule);
    unmap(mine, granule);
    say("g: release both", cuMemRelease(imported) ? 1 : cuMemRelease(block));
    close(descriptor);
}

static int start(void) {
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    return say("init", cuInit(0)) || say("device", cuDeviceGet(&device, 0)) ||
           say("context", cuDevicePrimaryCtxRetain(&context, device)) ||
           say("make it current", cuCtxSetCurrent(context)) ||
           say("granularity",
               cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static int open_hex(const char *hex) {
    CUipcMemHandle handle = {""};
    for (size_t i = 0; i < sizeof(handle.reserved); i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return 2;
        handle.reserved[i] = (char)byte;
    }
    say("open", open_bytes(&handle));
    return 0;
}

int main(int argc, char **argv) {
    if (start())
        return 1;
    if (argc == 3 && strcmp(argv[1], "open") == 0 && strlen(argv[2]) == 128)
        return open_hex(argv[2]);
    export_again();
    map_a_half();
    without_context();
    remap_beside_a_kernel();
    open_token();
    with_decompression();
    times();
    allow_another_card(); /* last: the context may be lost in it */
    return 0;
}
