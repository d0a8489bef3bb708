/* few_calls.c - calls the functions of a libcuda.so.1 that has a few only, each by its name, and
 * prints what they answer. */
#include "../../common/system_headers.h"

static void *driver;

static int call(const char *name, uintptr_t first, uintptr_t second, uintptr_t third) {
    int (*function)(uintptr_t, uintptr_t, uintptr_t) = NULL;
    *(void **)&function = dlsym(driver, name);
    const int code = function ? function(first, second, third) : -1;
    printf("%s: %d\n", name, code);
    return code;
}

int main(void) {
    uintptr_t pointer = 0, graph = 0, here = 0;
    size_t available = 0, total = 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || call("cuInit", 0, 0, 0))
        return 2;
    for (int i = 0; i < 3; i++) {
        int failed = call("cuMemAlloc_v2", (uintptr_t)&pointer, 4 << 20, 0);
        failed |= call("cuMemsetD8_v2", pointer, 7, 4 << 20);
        failed |= call("cuMemGetInfo_v2", (uintptr_t)&available, (uintptr_t)&total, 0);
        failed |= call("cuGraphInstantiateWithFlags", (uintptr_t)&graph, (uintptr_t)&here, 0);
        if (failed || ((unsigned char *)pointer)[4095] != 7 || call("cuMemFree_v2", pointer, 0, 0))
            return 1;
    }
    return 0;
}
