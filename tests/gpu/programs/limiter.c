/*
 * limiter.c - a preloaded library that limits the device memory of a process, at the places where
 * HAMi-core does: it takes dlsym, and what asks by that, by cuGetProcAddress or by an exported name
 * gets its functions; what it calls itself is libcuda's, by libcuda's handle.
 *
 * LIMITER_BYTES=n  no more than so many are given out at once; without it everything is counted
 * LIMITER_LOG=FILE at the end a line: PROGRAM peak BYTES, given N, refused N
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "../../common/system_headers.h"

#ifdef __aarch64__
#define DLSYM_VERSION "GLIBC_2.17"
#else
#define DLSYM_VERSION "GLIBC_2.2.5"
#endif
#define EXPORT __attribute__((visibility("default")))

enum { MOST_LIVE = 1 << 16 };

typedef void *look_up_fn(void *, const char *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct live {
    unsigned long long what; /* an address or a handle; 0: free */
    size_t size;
} lives[MOST_LIVE];
static size_t total, peak, given, refused;

static look_up_fn *look_up(void) {
    static look_up_fn *found;
    if (!found)
        found = (look_up_fn *)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    return found;
}

static void *driver(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_LAZY);
    return look_up()(library, name);
}
#define REAL(name) ((__typeof__(name) *)driver(#name))

__attribute__((destructor)) static void at_end(void) {
    const char *path = getenv("LIMITER_LOG");
    const int log = path && given + refused ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (log >= 0) {
        dprintf(log, "%s peak %zu, given %zu, refused %zu\n", program_invocation_short_name, peak,
                given, refused);
        close(log);
    }
}

static size_t limit(void) {
    const char *bytes = getenv("LIMITER_BYTES");
    return bytes ? strtoull(bytes, NULL, 0) : (size_t)-1;
}

/* Room for so much is taken before the driver is asked. */
static int is_over(size_t size) {
    pthread_mutex_lock(&lock);
    const int over = size > limit() || total > limit() - size;
    refused += (size_t)over;
    total += over ? 0 : size;
    peak = total > peak ? total : peak;
    pthread_mutex_unlock(&lock);
    return over;
}

static CUresult keep(CUresult result, unsigned long long what, size_t size) {
    pthread_mutex_lock(&lock);
    size_t at = 0;
    while (result == CUDA_SUCCESS && at < MOST_LIVE && lives[at].what)
        at++;
    if (result == CUDA_SUCCESS && at < MOST_LIVE) {
        lives[at] = (struct live){what, size};
        given++;
    } else
        total -= size;
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult forget(CUresult result, unsigned long long what) {
    pthread_mutex_lock(&lock);
    for (size_t at = 0; result == CUDA_SUCCESS && what && at < MOST_LIVE; at++)
        if (lives[at].what == what) {
            total -= lives[at].size;
            lives[at] = (struct live){0, 0};
            break;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    if (is_over(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = REAL(cuMemAlloc_v2)(out, size);
    return keep(result, result ? 0 : *out, size);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr at) {
    return forget(REAL(cuMemFree_v2)(at), at);
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                            const CUmemAllocationProp *how, unsigned long long flags) {
    if (is_over(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = REAL(cuMemCreate)(out, size, how, flags);
    return keep(result, result ? 0 : *out, size);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return forget(REAL(cuMemRelease)(handle), handle);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *unused, size_t *all) {
    const CUresult result = REAL(cuMemGetInfo_v2)(unused, all);
    if (result == CUDA_SUCCESS && limit() < *all) {
        *all = limit();
        *unused = total < limit() ? limit() - total : 0;
    }
    return result;
}

EXPORT CUresult cuGetProcAddress(const char *, void **, int, cuuint64_t);
EXPORT CUresult cuGetProcAddress_v2(const char *, void **, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult *);

/* By the driver's name, and by the name and the first version that is asked of cuGetProcAddress:
 * the runtime asks for each function in the version in which it came (cudaTypedefs.h). */
static const struct {
    const char *name, *asked;
    int version;
    void *mine;
} taken[] = {
    {"cuMemAlloc_v2", "cuMemAlloc", 3020, (void *)cuMemAlloc_v2},
    {"cuMemFree_v2", "cuMemFree", 3020, (void *)cuMemFree_v2},
    {"cuMemCreate", "cuMemCreate", 10020, (void *)cuMemCreate},
    {"cuMemRelease", "cuMemRelease", 10020, (void *)cuMemRelease},
    {"cuMemGetInfo_v2", "cuMemGetInfo", 3020, (void *)cuMemGetInfo_v2},
    {"cuGetProcAddress", "cuGetProcAddress", 11030, (void *)cuGetProcAddress},
    {"cuGetProcAddress_v2", "cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2},
};

static void put_in(CUresult result, const char *name, int version, void **found) {
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (result == CUDA_SUCCESS && version >= taken[i].version &&
            strcmp(name, taken[i].asked) == 0)
            *found = taken[i].mine;
}

CUresult cuGetProcAddress(const char *name, void **found, int version, cuuint64_t flags) {
    const CUresult result = REAL(cuGetProcAddress)(name, found, version, flags);
    put_in(result, name, version, found);
    return result;
}

CUresult cuGetProcAddress_v2(const char *name, void **found, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    const CUresult result = REAL(cuGetProcAddress_v2)(name, found, version, flags, status);
    put_in(result, name, version, found);
    return result;
}

EXPORT void *dlsym(void *restrict handle, const char *restrict name) {
    void *const found = look_up()(handle, name);
    for (size_t i = 0; found && handle != RTLD_NEXT && i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i].name) == 0)
            return taken[i].mine;
    return found;
}
