/*
 * The simulator under load: threads, a million allocations, ten thousand shared ones, clients that
 * are killed or stopped at any moment, memory that only a descriptor holds. In the end nothing may
 * be left, the daemon included. Runs only on the simulator; a card has no accounting that goes back
 * to zero.
 */
#include "../conformance/gpu.h"
#include "../conformance/lane.h"
#include "../protocol.h"

enum { THREADS = 16, ROUNDS = 2000, MILLION = 1000000, SHARED = 10000, CLIENTS = 8, TABLE = 64 };
enum { VMM_BLOCK = 4 << 20 };

static int failures;

static void expect(const char *what, bool good) {
    printf("%-60s %s\n", what, good ? "ok" : "FAILED");
    fflush(stdout);
    failures += !good;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void start(CUcontext *context) {
    CUdevice device;
    if (!gpu_load() || gpu.cuInit(0) || gpu.cuDeviceGet(&device, 0) ||
        gpu.cuDevicePrimaryCtxRetain(context, device) || gpu.cuCtxSetCurrent(*context)) {
        fprintf(stderr, "stress: no device\n");
        _exit(2);
    }
}

/* Runs a part in a process of its own; true if it returned true. */
static bool apart(bool (*part)(void)) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(part() ? 0 : 1);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool nothing_used(void) {
    CUcontext context;
    size_t available, total;
    start(&context);
    return !gpu.cuMemGetInfo_v2(&available, &total) && available == total;
}

/* --- 16 threads in one process --- */

static CUcontext shared_context;

static void *one_thread(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    unsigned char byte = (unsigned char)seed, back;
    CUipcMemHandle handle;
    CUdeviceptr at;
    gpu.cuCtxSetCurrent(shared_context);
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = (size_t)(rand_r(&seed) % 4 ? 1 + rand_r(&seed) % 65536 : 3 << 20);
        if (gpu.cuMemAlloc_v2(&at, size) || gpu.cuMemsetD8_v2(at, byte, size) ||
            gpu.cuIpcGetMemHandle(&handle, at) || gpu.cuMemcpyDtoH_v2(&back, at + size - 1, 1) ||
            back != byte || gpu.cuMemFree_v2(at) || !gpu.cuMemFree_v2(at + 1))
            return argument;
    }
    return NULL;
}

static bool threads(void) {
    pthread_t thread[THREADS];
    bool good = true;
    start(&shared_context);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, one_thread, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        good &= !bad;
    }
    return good && nothing_used();
}

/* --- many at once --- */

static bool million(void) {
    CUcontext context;
    CUdeviceptr *at = calloc(MILLION, sizeof *at);
    double before = seconds();
    bool good = true;
    start(&context);
    for (int i = 0; i < MILLION; i++)
        good &= !gpu.cuMemAlloc_v2(&at[i], 1024);
    double middle = seconds();
    for (int i = 0; i < MILLION; i++)
        good &= !gpu.cuMemFree_v2(at[i]);
    printf("  %.0f ns an allocation, %.0f ns a free\n", (middle - before) * 1e9 / MILLION,
           (seconds() - middle) * 1e9 / MILLION);
    free(at);
    return good && nothing_used();
}

static CUipcMemHandle *handles; /* shared between processes */

static bool open_all(void) {
    CUcontext context;
    CUdeviceptr at;
    int value;
    bool good = true;
    double before = seconds();
    start(&context);
    for (int i = 0; i < SHARED; i++)
        good &= !gpu.cuIpcOpenMemHandle_v2(&at, handles[i], 1) &&
                !gpu.cuMemcpyDtoH_v2(&value, at, sizeof value);
    printf("  %.1f us an open and a small copy\n", (seconds() - before) * 1e6 / SHARED);
    return good;
}

static bool export_all(int ready, int go) {
    CUcontext context;
    CUdeviceptr at;
    char byte = 1;
    start(&context);
    for (int i = 0; i < SHARED; i++)
        if (gpu.cuMemAlloc_v2(&at, 2 << 20) || gpu.cuIpcGetMemHandle(&handles[i], at))
            byte = 0;
    return write(ready, &byte, 1) == 1 && read(go, &byte, 1) >= 0;
}

static bool shared(void) {
    int ready[2], go[2];
    char byte = 0;
    if (pipe(ready) || pipe(go))
        return false;
    pid_t owner = fork();
    if (owner == 0)
        _exit(export_all(ready[1], go[0]) ? 0 : 1);
    bool good = read(ready[0], &byte, 1) == 1 && byte && apart(open_all);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    return good && apart(nothing_used);
}

/* --- clients that die or stop at any moment --- */

static struct table {
    CUipcMemHandle handles[TABLE];
    volatile unsigned filled;
} * table;

static bool create(CUmemGenericAllocationHandle *block, int *descriptor) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return !gpu.cuMemCreate(block, VMM_BLOCK, &wanted, 0) &&
           !gpu.cuMemExportToShareableHandle(descriptor, *block,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static bool import(CUmemGenericAllocationHandle *block, int descriptor) {
    return !gpu.cuMemImportFromShareableHandle(block, (void *)(intptr_t)descriptor,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static bool map(CUmemGenericAllocationHandle block, CUdeviceptr *at) {
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return !gpu.cuMemAddressReserve(at, VMM_BLOCK, 0, 0, 0) &&
           !gpu.cuMemMap(*at, VMM_BLOCK, 0, block, 0) &&
           !gpu.cuMemSetAccess(*at, VMM_BLOCK, &access, 1);
}

/* One life of a block with a descriptor: made, imported by its maker, mapped, and let go. */
static void live_vmm(void) {
    CUmemGenericAllocationHandle block, again = 0;
    CUdeviceptr at;
    int descriptor;
    if (!create(&block, &descriptor))
        return;
    gpu.cuMemRelease(block);
    if (import(&again, descriptor) && map(again, &at) && !gpu.cuMemsetD8_v2(at, 1, VMM_BLOCK) &&
        !gpu.cuMemUnmap(at, VMM_BLOCK))
        gpu.cuMemAddressFree(at, VMM_BLOCK);
    gpu.cuMemRelease(again);
    close(descriptor);
}

static void live(unsigned seed) {
    CUdeviceptr own[TABLE] = {0}, opened[TABLE] = {0};
    CUcontext context;
    start(&context);
    for (;;) {
        unsigned i = (unsigned)rand_r(&seed) % TABLE;
        if (own[i]) {
            gpu.cuMemFree_v2(own[i]);
            own[i] = 0;
        } else if (!gpu.cuMemAlloc_v2(&own[i], (size_t)(rand_r(&seed) % (8 << 20)) + 1)) {
            gpu.cuIpcGetMemHandle(&table->handles[i], own[i]);
        }
        i = (unsigned)rand_r(&seed) % TABLE;
        if (opened[i]) {
            gpu.cuIpcCloseMemHandle(opened[i]);
            opened[i] = 0;
        } else {
            gpu.cuIpcOpenMemHandle_v2(&opened[i], table->handles[i], 1);
        }
        if (i % 8 == 0)
            live_vmm();
    }
}

static pid_t spawn_client(unsigned seed) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        live(seed);
    return child;
}

static bool killed(void) {
    pid_t clients[CLIENTS];
    unsigned seed = 1;
    struct timespec nap = {.tv_nsec = 20000000};
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = spawn_client(seed++);
    for (int round = 0; round < 150; round++) {
        nanosleep(&nap, NULL);
        int i = rand() % CLIENTS;
        /* A stopped one that is killed dies, too; until then it must hang nobody. */
        kill(clients[i], round % 5 ? SIGKILL : SIGSTOP);
        if (round % 5 == 0)
            continue;
        waitpid(clients[i], NULL, 0);
        clients[i] = spawn_client(seed++);
    }
    for (int i = 0; i < CLIENTS; i++) {
        kill(clients[i], SIGKILL);
        waitpid(clients[i], NULL, 0);
    }
    return apart(nothing_used);
}

/* --- memory that nobody but a descriptor holds --- */

static bool leave(void) {
    CUcontext context;
    CUmemGenericAllocationHandle block;
    CUdeviceptr at;
    int descriptor;
    start(&context);
    return create(&block, &descriptor) && map(block, &at) &&
           !gpu.cuMemsetD8_v2(at, 77, VMM_BLOCK) && lane_send(LANE_PEER, descriptor);
}

static int left; /* the descriptor, in the process that has no context, and in its children */

static bool find_left(void) {
    CUcontext context;
    CUmemGenericAllocationHandle block;
    CUdeviceptr at;
    unsigned char byte = 0;
    start(&context);
    return import(&block, left) && map(block, &at) && !gpu.cuMemcpyDtoH_v2(&byte, at, 1) &&
           byte == 77 && !nothing_used();
}

static bool held(void) {
    struct timespec nap = {.tv_sec = 3}; /* longer than the daemon stays for nobody */
    if (!lane_open() || !apart(leave))
        return false;
    left = lane_receive(LANE_PARENT);
    nanosleep(&nap, NULL);
    bool good = apart(find_left) && apart(find_left);
    close(left);
    lane_close();
    return good && apart(nothing_used);
}

static bool daemon_gone(void) {
    struct sockaddr_un address;
    socklen_t size = sim_address(&address);
    struct timespec nap = {.tv_sec = 3};
    nanosleep(&nap, NULL);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    bool refused = connect(fd, (struct sockaddr *)&address, size) != 0;
    close(fd);
    return refused;
}

int main(void) {
    setenv("GPUSHARE_SIM_MEMORY", "32GiB", 0);
    setenv("GPUSHARE_SIM_ROOT", "stress", 1);
    handles = mmap(NULL, SHARED * sizeof *handles, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (handles == MAP_FAILED || table == MAP_FAILED)
        return 2;
    expect("16 threads allocate, fill, export, read, free", apart(threads));
    expect("a million live allocations of 1 KiB", apart(million));
    expect("10,000 allocations of 2 MiB open in another process", shared());
    expect("clients killed and stopped at random: nothing is left", killed());
    expect("what only a descriptor holds stays until that is closed", held());
    expect("the daemon is gone", daemon_gone());
    return failures ? 1 : 0;
}
