/*
 * interposer.c - somebody else's preloaded library. INTERPOSE_NEXT wraps CUDA functions and
 * forwards by RTLD_NEXT; INTERPOSE_DLSYM replaces dlsym itself, as HAMi-core does. Says at the end
 * how often it was called.
 */
#include "../../common/system_headers.h"

#ifdef __aarch64__
#define DLSYM_VERSION "GLIBC_2.17"
#else
#define DLSYM_VERSION "GLIBC_2.2.5"
#endif

static int calls;

__attribute__((destructor)) static void at_end(void) {
    if (getenv("INTERPOSER_COUNTS"))
        fprintf(stderr, "interposer: %s\n", calls ? "called" : "not called");
}

#ifdef INTERPOSE_NEXT
#define WRAP(name, parameters, arguments)                                                          \
    int name parameters;                                                                           \
    int name parameters {                                                                          \
        static int(*next) parameters;                                                              \
        if (!next)                                                                                 \
            next = (__typeof__(next))dlsym(RTLD_NEXT, #name);                                      \
        calls++;                                                                                   \
        return next ? next arguments : 999;                                                        \
    }
WRAP(cuMemAlloc_v2, (unsigned long long *out, size_t size), (out, size))
WRAP(cuMemFree_v2, (unsigned long long pointer), (pointer))
WRAP(cuInit, (unsigned flags), (flags))
WRAP(cudaMalloc, (void **out, size_t size), (out, size))
WRAP(cudaFree, (void *pointer), (pointer))
#else
void *dlsym(void *restrict handle, const char *restrict name) {
    static void *(*next)(void *, const char *);
    if (!next)
        next = (__typeof__(next))dlvsym(RTLD_NEXT, "dlsym", DLSYM_VERSION);
    calls += !strncmp(name, "cu", 2);
    return next ? next(handle, name) : NULL;
}
#endif
