/*
 * hostile.c - a program that an audit has a hard time with: between calls that are wrong in known
 * ways it takes or closes all descriptors, becomes another user, changes its root or its
 * namespaces, fills the disk, may write no file or have no descriptor, and ends in many ways. See
 * hostile.py.
 *
 *   soak-hostile PLACE SEED
 *
 * PLACE has `done`, where it counts, in memory, by the finding: what is surely wrong, and what may
 * be told of besides, for the driver answered otherwise than it does where it has all that it
 * needs. What the driver refuses beforehand is not done, and not counted. The seed decides all of
 * it.
 */
#include <cuda.h>

#include "../differ/random.h"

enum { BLOCK = 2 << 20, POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
enum { NOBODY = 65534, FLOOD = 1500, OWN_DESCRIPTORS = 199 /* the simulator's are above */ };

#define WRONGS(ROW)                                                                                \
    ROW(DOUBLE_FREE, "double-free")                                                                \
    ROW(FREE_INTERIOR, "free-interior")                                                            \
    ROW(CLOSE_OWN, "close-own")                                                                    \
    ROW(CLOSE_UNOPENED, "close-unopened")                                                          \
    ROW(OPEN_OWN, "open-own-handle")                                                               \
    ROW(OPEN_UNKNOWN, "open-unknown")                                                              \
    ROW(EVENT_PRIVATE, "event-not-interprocess")                                                   \
    ROW(EVENT_UNKNOWN, "event-unknown")                                                            \
    ROW(USE_AFTER_FREE, "use-after-free")                                                          \
    ROW(DOUBLE_RELEASE, "vmm-double-release")                                                      \
    ROW(GRANULARITY, "vmm-granularity")                                                            \
    ROW(UNMAP_NOTHING, "unmap-mismatch")                                                           \
    ROW(EXPORT_TYPE, "export-type-missing")                                                        \
    ROW(DESCRIPTOR, "descriptor-refused")                                                          \
    ROW(FREE_MAPPED, "address-free-mapped")                                                        \
    ROW(FORKED, "fork-with-context")                                                               \
    ROW(LEAK_EXPORT, "leak-export")                                                                \
    ROW(REFUSED, "ipc-call-failed")

enum wrong {
#define ENTRY(id, name) id,
    WRONGS(ENTRY)
#undef ENTRY
};

static struct counted {
    char finding[48];
    _Atomic uint64_t done, may;
} * counts;

static const char *place;
static struct numbers numbers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over addresses */
static uint64_t leaked;

static void judge(enum wrong wrong, int code, int expected) {
    if (code == expected) {
        atomic_fetch_add(&counts[wrong].done, 1);
    } else {
        atomic_fetch_add(&counts[wrong].may, 1);
        atomic_fetch_add(&counts[REFUSED].may, 1);
    }
}

/* --- what is wrong --- */

static CUdeviceptr allocate(void) {
    CUdeviceptr p = 0;
    return cuMemAlloc(&p, BLOCK) ? 0 : p;
}

static void double_free(void) {
    const CUdeviceptr p = allocate();
    if (p && !cuMemFree(p))
        judge(DOUBLE_FREE, (int)cuMemFree(p), 1);
}

static void use_after_free(void) {
    const CUdeviceptr p = allocate();
    if (p && !cuMemFree(p))
        judge(USE_AFTER_FREE, (int)cuMemsetD8(p, 1, 16), 1);
}

static void free_interior(void) {
    const CUdeviceptr p = allocate();
    if (!p)
        return;
    judge(FREE_INTERIOR, (int)cuMemFree(p + 4096), 1);
    cuMemFree(p);
}

static void close_own(void) {
    const CUdeviceptr p = allocate();
    if (!p)
        return;
    judge(CLOSE_OWN, (int)cuIpcCloseMemHandle(p), 1);
    cuMemFree(p);
}

static void close_unopened(void) {
    judge(CLOSE_UNOPENED, (int)cuIpcCloseMemHandle(0), 1);
}

/* Whether it has a handle, which may be wanted where that cannot be published. */
static bool export(CUdeviceptr p, CUipcMemHandle *handle) {
    const bool is = p && !cuIpcGetMemHandle(handle, p);
    if (p && !is)
        atomic_fetch_add(&counts[REFUSED].may, 1);
    return is;
}

static void open_own(void) {
    CUipcMemHandle handle;
    CUdeviceptr again;
    const CUdeviceptr p = allocate();
    if (export(p, &handle))
        judge(OPEN_OWN, (int)cuIpcOpenMemHandle(&again, handle, 1), 201);
    cuMemFree(p);
}

static void open_unknown(void) {
    CUipcMemHandle handle;
    CUdeviceptr p;
    memset(&handle, 0x77, sizeof(handle));
    judge(OPEN_UNKNOWN, (int)cuIpcOpenMemHandle(&p, handle, 1), 1);
}

static void event_private(void) {
    CUipcEventHandle handle;
    CUevent event;
    if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
        return;
    judge(EVENT_PRIVATE, (int)cuIpcGetEventHandle(&handle, event), 400);
    cuEventDestroy(event);
}

static void event_unknown(void) {
    CUipcEventHandle handle;
    CUevent event;
    memset(&handle, 0, sizeof(handle));
    judge(EVENT_UNKNOWN, (int)cuIpcOpenEventHandle(&event, handle), 205);
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size, unsigned types) {
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = (CUmemAllocationHandleType)types,
                                        .location =
                                            (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    return cuMemCreate(out, size, &wanted, 0);
}

static void double_release(void) {
    CUmemGenericAllocationHandle handle;
    if (!create(&handle, BLOCK, 0) && !cuMemRelease(handle))
        judge(DOUBLE_RELEASE, (int)cuMemRelease(handle), 1);
}

static void granularity(void) {
    CUmemGenericAllocationHandle handle;
    judge(GRANULARITY, (int)create(&handle, BLOCK / 2, 0), 1);
}

static void unmap_nothing(void) {
    CUdeviceptr p;
    if (cuMemAddressReserve(&p, BLOCK, 0, 0, 0))
        return;
    judge(UNMAP_NOTHING, (int)cuMemUnmap(p, BLOCK), 0);
    cuMemAddressFree(p, BLOCK);
}

static void export_type(void) {
    CUmemGenericAllocationHandle handle;
    int descriptor;
    if (create(&handle, BLOCK, 0))
        return;
    judge(
        EXPORT_TYPE,
        (int)cuMemExportToShareableHandle(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0),
        1);
    cuMemRelease(handle);
}

static void import_nothing(void) {
    CUmemGenericAllocationHandle handle;
    judge(DESCRIPTOR,
          (int)cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)999999,
                                              (CUmemAllocationHandleType)POSIX),
          999);
}

static void free_mapped(void) {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    if (create(&handle, BLOCK, 0))
        return;
    if (!cuMemAddressReserve(&p, BLOCK, 0, 0, 0)) {
        if (!cuMemMap(p, BLOCK, 0, handle, 0)) {
            judge(FREE_MAPPED, (int)cuMemAddressFree(p, BLOCK), 1);
            cuMemUnmap(p, BLOCK);
        }
        cuMemAddressFree(p, BLOCK);
    }
    cuMemRelease(handle);
}

static void leak_export(void) {
    CUipcMemHandle handle;
    leaked += export(allocate(), &handle);
}

static void flood(void) {
    for (int i = 0; i < FLOOD; i++)
        double_free();
}

static void await(pid_t child) {
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void forked(void) {
    CUdeviceptr p;
    const pid_t child = fork();
    if (child == 0) {
        judge(FORKED, (int)cuMemAlloc(&p, BLOCK), 3);
        _exit(0);
    }
    await(child);
}

/* Alone with the addresses. */
static void do_wrong(void) {
    static void (*const all[])(void) = {
        double_free,  use_after_free, free_interior, close_own,      close_unopened, open_own,
        open_unknown, event_private,  event_unknown, double_release, granularity,    unmap_nothing,
        export_type,  import_nothing, free_mapped,   leak_export,    flood,          forked};
    static const size_t count = sizeof(all) / sizeof(*all);
    const size_t chosen = number_below(&numbers, count);
    const bool rare = all[chosen] == flood && !one_of(&numbers, 4);
    pthread_mutex_lock(&lock);
    (rare ? double_free : all[chosen])();
    pthread_mutex_unlock(&lock);
}

/* --- what the program does to itself --- */

static void path_of(char *path, const char *name) {
    snprintf(path, 4096, "%s/%s", place, name);
}

static void take_descriptors(void) {
    const int first = dup(0);
    const struct rlimit few = {(rlim_t)first + 64, (rlim_t)first + 64};
    if (first >= 0 && setrlimit(RLIMIT_NOFILE, &few) == 0)
        while (dup(0) >= 0)
            ;
}

static void close_own_descriptors(void) {
    syscall(SYS_close_range, 3, OWN_DESCRIPTORS, 0);
}

/* The driver's, too: what it answers from then on is its matter. */
static void close_all(void) {
    syscall(SYS_close_range, 3, ~0U, 0);
}

static void become_nobody(void) {
    (void)!setresuid(NOBODY, NOBODY, NOBODY);
}

static void change_root(void) {
    char jail[4096];
    path_of(jail, "jail");
    (void)!(chroot(jail) == 0 && chdir("/") == 0);
}

static void fill_disk(void) {
    static const char zeros[65536];
    char path[4096];
    path_of(path, "disk/filler");
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    signal(SIGXFSZ, SIG_IGN); /* its own writes are not what is looked at */
    for (size_t part = sizeof(zeros); part; part /= 2)
        while (write(file, zeros, part) > 0)
            ;
    signal(SIGXFSZ, SIG_DFL);
    close(file);
}

static void forbid(__rlimit_resource_t what) {
    setrlimit(what, &(struct rlimit){0, 0});
}

static void forbid_files(void) {
    forbid(RLIMIT_FSIZE);
}

static void forbid_descriptors(void) {
    forbid(RLIMIT_NOFILE);
}

static void leave_namespaces(void) {
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID);
}

static void block_signals(void) {
    sigset_t set;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* What the processes share goes away under them. */
static void lose_directory(void) {
    char from[4096], to[4096];
    path_of(from, "disk/pub");
    path_of(to, "disk/pub.gone");
    rename(from, to);
}

static void make_trouble(void) {
    static void (*const all[])(void) = {take_descriptors, close_own_descriptors, close_all,
                                        become_nobody,    change_root,           fill_disk,
                                        forbid_files,     forbid_descriptors,    leave_namespaces,
                                        block_signals,    lose_directory};
    all[number_below(&numbers, sizeof(all) / sizeof(*all))]();
}

/* --- a second thread, which does nothing wrong --- */

static atomic_bool over;

static void *do_right(void *context) {
    if (cuCtxSetCurrent(context))
        return NULL;
    while (!over) {
        CUdeviceptr p = 0;
        pthread_mutex_lock(&lock);
        if (!cuMemAlloc(&p, BLOCK))
            cuMemFree(p);
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return NULL;
}

static bool start_cuda(void) {
    CUcontext context;
    pthread_t thread;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return false;
    if (one_of(&numbers, 2) && pthread_create(&thread, NULL, do_right, context) == 0)
        pthread_detach(thread);
    return true;
}

/* --- ends --- */

static void end_orderly(void) {
    atomic_fetch_add(&counts[LEAK_EXPORT].done, leaked);
    leaked = 0;
}

static void end_suddenly(int number) {
    atomic_fetch_add(&counts[LEAK_EXPORT].may, leaked);
    signal(number, SIG_DFL);
    raise(number);
    _exit(0);
}

/* What an execution ends has no last report: it goes on as another program, if it can. */
static void go_on(void) {
    char seed[24];
    snprintf(seed, sizeof(seed), "%lu", (unsigned long)number_below(&numbers, 1 << 30));
    atomic_fetch_add(&counts[LEAK_EXPORT].may, leaked);
    leaked = 0;
    execl("/proc/self/exe", "soak-hostile", place, seed, (char *)NULL);
}

static int end(void) {
    switch (number_below(&numbers, 8)) {
    case 0:
        end_suddenly(SIGKILL);
        break;
    case 1:
        end_suddenly(SIGABRT);
        break;
    case 2:
        end_orderly();
        _exit(0);
    case 3:
        go_on();
        break;
    default:
        break;
    }
    end_orderly();
    return 0;
}

static bool open_counts(void) {
    static const char *const names[] = {
#define ENTRY(id, name) name,
        WRONGS(ENTRY)
#undef ENTRY
    };
    enum { NAMES = sizeof(names) / sizeof(*names) };
    char path[4096];
    path_of(path, "done");
    const int file = open(path, O_RDWR | O_CLOEXEC);
    counts = mmap(NULL, NAMES * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (counts == MAP_FAILED)
        return false;
    for (size_t i = 0; i < NAMES; i++)
        strcpy(counts[i].finding, names[i]);
    return true;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    place = argv[1];
    numbers = numbers_from(strtoul(argv[2], NULL, 10), 0, 0);
    if (!open_counts())
        return 0; /* executed where it has no place any more: it does nothing */
    bool tried = !one_of(&numbers, 8), started = tried && start_cuda();
    for (uint64_t steps = 4 + number_below(&numbers, 24); steps; steps--) {
        if (one_of(&numbers, 4))
            make_trouble();
        else if (started || (!tried && (started = start_cuda())))
            do_wrong();
        tried = true; /* a simulator whose daemon cannot be had waits 8 s */
    }
    over = true;
    return end();
}
