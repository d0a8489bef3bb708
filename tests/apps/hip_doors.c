/*
 * hip_doors.c - reaches HIP by the door that its argument names, allocates, frees, and frees again:
 * prints the three codes, and what hipGetLastError says. Not linked with a runtime unless LINKED.
 *   linked, dlsym, dlvsym, default, getproc, entrypoint: to the libamdhip64.so of the path
 *   nothing: looks hipMalloc up where there is no runtime
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LINKED
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#else
typedef int hipError_t;
#endif

typedef hipError_t allocate_fn(void **, size_t);
typedef hipError_t free_fn(void *);
typedef hipError_t last_fn(void);
typedef hipError_t get_fn(const char *, void **, int, uint64_t, void *);
typedef hipError_t entry_fn(const char *, void **, unsigned long long, void *);

static void *library;

static void *by_resolver(const char *door, const char *name) {
    void *found = NULL;
    if (strcmp(door, "getproc") == 0) {
        get_fn *get = (get_fn *)dlsym(library, "hipGetProcAddress");
        return get && get(name, &found, 0, 0, NULL) == 0 ? found : NULL;
    }
    entry_fn *get = (entry_fn *)dlsym(library, "hipGetDriverEntryPoint");
    return get && get(name, &found, 0, NULL) == 0 ? found : NULL;
}

static void *find(const char *door, const char *name) {
#ifdef LINKED
    if (strcmp(door, "linked") == 0)
        return strcmp(name, "hipMalloc") == 0 ? (void *)(allocate_fn *)hipMalloc
               : strcmp(name, "hipFree") == 0 ? (void *)hipFree
                                              : (void *)hipGetLastError;
#endif
    return strcmp(door, "dlsym") == 0     ? dlsym(library, name)
           : strcmp(door, "dlvsym") == 0  ? dlvsym(library, name, "hip_4.2")
           : strcmp(door, "default") == 0 ? dlsym(RTLD_DEFAULT, name)
                                          : by_resolver(door, name);
}

int main(int argc, char **argv) {
    const char *door = argc > 1 ? argv[1] : "";
    void *pointer = NULL;
    if (strcmp(door, "nothing") == 0) {
        printf("%s\n", dlsym(RTLD_DEFAULT, "hipMalloc") ? "found" : "not found");
        return 0;
    }
    const int scope = strcmp(door, "default") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    library = dlopen("libamdhip64.so", RTLD_NOW | scope);
    if (!library)
        return 1;
    allocate_fn *allocate = (allocate_fn *)find(door, "hipMalloc");
    free_fn *release = (free_fn *)find(door, "hipFree");
    last_fn *last = (last_fn *)find(door, "hipGetLastError");
    if (!allocate || !release || !last)
        return 2;
    printf("%d", allocate(&pointer, 4096));
    printf(" %d", release(pointer));
    printf(" %d", release(pointer));
    printf(" %d\n", last());
    return 0;
}
