/*
 * taker.c - takes 64 MiB by the door that its argument names, and gives them back twice. Built
 * four times, as door.c is: linked with libcuda (LINKED_DRIVER), with a runtime (LINKED_RUNTIME),
 * and with nothing.
 */
#include "driver.h"
#include "runtime.h"

enum { TAKEN = 64 << 20 };

static int take(const struct door *door) {
    void *taken = NULL;
    const int code = door->alloc(&taken, TAKEN);
    const int first = code ? 0 : door->free(taken), second = code ? 0 : door->free(taken);
    printf("%d %d,%d\n", code, first, second);
    return 0;
}

static int take_by(__typeof__(cuMemAlloc_v2) *alloc, __typeof__(cuMemFree_v2) *give) {
    driver.alloc = alloc;
    driver.free = give;
    if (driver.init(0) || driver_context())
        return 1;
    return take(&driver_door);
}

static void *library;

static void *by_handle(const char *name) {
    return dlsym(library, name);
}

static __typeof__(cuGetProcAddress_v2) *get;

static void *by_get(const char *name) {
    void *found = NULL;
    return get(name, &found, 12000, 0, NULL) == CUDA_SUCCESS ? found : NULL;
}

int main(int argc, char **argv) {
    const char *door = argc > 1 ? argv[1] : "";
    (void)runtime_door;
    (void)runtime_walk_found;
#ifdef LINKED_RUNTIME
    runtime.alloc = cudaMalloc;
    runtime.free = cudaFree;
    return take(&runtime_door);
#endif
    library = dlopen("libcuda.so.1", RTLD_NOW);
    driver.init = (__typeof__(driver.init))by_handle("cuInit");
#ifdef LINKED_DRIVER
    if (strcmp(door, "linked") == 0)
        return take_by(cuMemAlloc_v2, cuMemFree_v2);
    if (strcmp(door, "both") == 0 && take_by(cuMemAlloc_v2, cuMemFree_v2))
        return 1;
    get = cuGetProcAddress_v2;
#else
    get = (__typeof__(get))by_handle("cuGetProcAddress_v2");
#endif
    if (strcmp(door, "get") == 0)
        return take_by((__typeof__(driver.alloc))by_get("cuMemAlloc"),
                       (__typeof__(driver.free))by_get("cuMemFree"));
    return take_by((__typeof__(driver.alloc))by_handle("cuMemAlloc_v2"),
                   (__typeof__(driver.free))by_handle("cuMemFree_v2"));
}
