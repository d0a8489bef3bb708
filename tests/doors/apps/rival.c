/*
 * rival.c - somebody else's preloaded library, that counts allocations and refuses those over
 * RIVAL_LIMIT bytes. Each kind steps in at another place:
 *   RIVAL_DLSYM    dlsym, and cuGetProcAddress by that; the real dlsym by dlvsym
 *   RIVAL_ALL      that, and all of them by exported names; what it goes on to is libcuda's, found
 *                  by libcuda's handle and libc's dlsym (HAMi-core)
 *                  ("bound": it reaches its own functions, not the first of the name)
 *   RIVAL_GETPROC  the exported cuGetProcAddress alone (cuInterpose)
 *   RIVAL_DRIVER   cuMemAlloc_v2, forwarded by RTLD_NEXT
 *   RIVAL_RUNTIME  cudaMalloc, forwarded by RTLD_NEXT (torch_memory_saver)
 *   RIVAL_LINKED   the exported cuGetProcAddress, and what it hands out calls cuMemAlloc_v2 by name
 * Says at the end how many allocations it saw.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "../../common/system_headers.h"

#ifdef __aarch64__
#define DLSYM_VERSION "GLIBC_2.17"
#else
#define DLSYM_VERSION "GLIBC_2.2.5"
#endif

static int seen;

__attribute__((destructor)) static void at_end(void) {
    fprintf(stderr, RIVAL ": %d\n", seen);
}

static int is_over(size_t size) {
    const char *limit = getenv("RIVAL_LIMIT");
    seen++;
    return limit && size > strtoull(limit, NULL, 0);
}

#ifdef RIVAL_RUNTIME
int cudaMalloc(void **out, size_t size);
int cudaMalloc(void **out, size_t size) {
    int (*next)(void **, size_t) = (__typeof__(next))dlsym(RTLD_NEXT, "cudaMalloc");
    return is_over(size) ? 2 : next ? next(out, size) : 999;
}
#else

typedef void *look_up_fn(void *, const char *);
typedef __typeof__(cuMemAlloc_v2) alloc_fn;
typedef __typeof__(cuGetProcAddress) get1_fn;
typedef __typeof__(cuGetProcAddress_v2) get2_fn;

static look_up_fn *look_up;

/* HAMi-core's way past whoever stands behind it, else its own place among what is loaded, or the
 * libcuda that the program has loaded for itself. */
static void *driver(const char *name) {
#ifdef RIVAL_ALL
    return look_up(dlopen("libcuda.so.1", RTLD_LAZY), name);
#else
    void *const next = look_up ? look_up(RTLD_NEXT, name) : dlsym(RTLD_NEXT, name);
    void *const library = next ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return next ? next : look_up ? look_up(library, name) : dlsym(library, name);
#endif
}

#if defined(RIVAL_DLSYM) || defined(RIVAL_ALL)
__attribute__((constructor)) static void at_start(void) {
    look_up = (look_up_fn *)dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
}
#endif

#if defined(RIVAL_DRIVER) || defined(RIVAL_ALL)
#define ALLOC cuMemAlloc_v2
#else
#define ALLOC alloc
static
#endif
CUresult ALLOC(CUdeviceptr *out, size_t size) {
    if (is_over(size))
        return CUDA_ERROR_OUT_OF_MEMORY;
#ifdef RIVAL_LINKED
    return cuMemAlloc_v2(out, size);
#else
    return ((alloc_fn *)driver("cuMemAlloc_v2"))(out, size);
#endif
}

#ifndef RIVAL_DRIVER
#ifdef RIVAL_DLSYM
#define GET(name) static CUresult my_##name
#define GOT(name) my_##name
#else
#define GET(name) CUresult name
#define GOT(name) name
#endif

static void put_in(CUresult result, const char *name, int version, void **found) {
    if (result == CUDA_SUCCESS && strcmp(name, "cuMemAlloc") == 0 && version >= 3020)
        *found = (void *)ALLOC;
}

GET(cuGetProcAddress)(const char *name, void **found, int version, cuuint64_t flags) {
    const CUresult result = ((get1_fn *)driver("cuGetProcAddress"))(name, found, version, flags);
    put_in(result, name, version, found);
    return result;
}

GET(cuGetProcAddress_v2)
(const char *name, void **found, int version, cuuint64_t flags,
 CUdriverProcAddressQueryResult *status) {
    const CUresult result =
        ((get2_fn *)driver("cuGetProcAddress_v2"))(name, found, version, flags, status);
    put_in(result, name, version, found);
    return result;
}

#if defined(RIVAL_DLSYM) || defined(RIVAL_ALL)
void *dlsym(void *restrict handle, const char *restrict name) {
    if (!look_up)
        at_start();
    void *const found = look_up(handle, name);
    return !found || handle == RTLD_NEXT              ? found
           : strcmp(name, "cuMemAlloc_v2") == 0       ? (void *)ALLOC
           : strcmp(name, "cuGetProcAddress") == 0    ? (void *)GOT(cuGetProcAddress)
           : strcmp(name, "cuGetProcAddress_v2") == 0 ? (void *)GOT(cuGetProcAddress_v2)
                                                      : found;
}
#endif
#endif
#endif
