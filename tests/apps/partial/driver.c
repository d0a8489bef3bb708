/* driver.c - a libcuda.so.1 with the few functions that a program under test needs, as those have
 * that stand in for it. It lacks cuCtxGetCurrent. -DMORE adds the functions for contexts. */
#include "../../common/system_headers.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags) {
    return flags ? 1 : 0;
}

EXPORT int cuMemAlloc_v2(uintptr_t *out, size_t size) {
    *out = (uintptr_t)malloc(size);
    return *out ? 0 : 2;
}

EXPORT int cuMemFree_v2(uintptr_t pointer) {
    free((void *)pointer);
    return 0;
}

EXPORT int cuMemsetD8_v2(uintptr_t to, unsigned char value, size_t count) {
    for (size_t i = 0; i < count; i++)
        ((volatile unsigned char *)to)[i] = value;
    return 0;
}

EXPORT int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
    *out = graph;
    return (int)flags;
}

EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total) {
    *available = *total = 1 << 30;
    return 0;
}

#ifdef MORE
static void *current = &current;

EXPORT int cuCtxGetCurrent(void **out) {
    *out = current;
    return 0;
}
EXPORT int cuCtxGetDevice(int *out) {
    *out = 0;
    return 0;
}
EXPORT int cuCtxPushCurrent_v2(void *context) {
    return context != current;
}
EXPORT int cuCtxPopCurrent_v2(void **out) {
    *out = current;
    return 0;
}
#endif
