/*
 * hip_doors.c - reaches HIP by the door that its argument names, allocates, frees, and frees again:
 * prints the three codes, and what hipGetLastError says. Not linked with a runtime unless LINKED.
 *   linked, dlsym, dlvsym, default, getproc, entrypoint: to the libamdhip64.so of the path
 *   a second word, "calls": prints instead what hipGetDeviceCount answers, and six other calls
 *   nothing: looks hipMalloc up where there is no runtime
 */
#include "../common/system_headers.h"

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

#ifdef LINKED
static void *find_linked(const char *name) {
    static const struct {
        const char *name;
        void *function;
    } all[] = {
#define ROW(function) {#function, (void *)function}
        {"hipMalloc", (void *)(allocate_fn *)hipMalloc},
        ROW(hipFree),
        ROW(hipGetLastError),
        ROW(hipGetDeviceCount),
        ROW(hipInit),
        ROW(hipSetDevice),
        ROW(hipDeviceSynchronize),
        ROW(hipEventCreate),
        ROW(hipIpcGetMemHandle),
        ROW(hipIpcCloseMemHandle),
#undef ROW
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].function;
    return NULL;
}
#endif

static void *find(const char *door, const char *name) {
#ifdef LINKED
    if (strcmp(door, "linked") == 0)
        return find_linked(name);
#endif
    return strcmp(door, "dlsym") == 0     ? dlsym(library, name)
           : strcmp(door, "dlvsym") == 0  ? dlvsym(library, name, "hip_4.2")
           : strcmp(door, "default") == 0 ? dlsym(RTLD_DEFAULT, name)
                                          : by_resolver(door, name);
}

/* All take pointers or a number, or nothing. */
static int print_calls(const char *door) {
    static const char *const names[] = {"hipGetDeviceCount",   "hipInit",
                                        "hipSetDevice",        "hipDeviceSynchronize",
                                        "hipEventCreate",      "hipIpcGetMemHandle",
                                        "hipIpcCloseMemHandle"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char handle[64] = {0};
        hipError_t (*call)(void *, void *) = (hipError_t(*)(void *, void *))find(door, names[i]);
        const int is_number = i == 1 || i == 2;
        if (!call)
            return 2;
        printf("%s%d", i ? " " : "", call(is_number ? NULL : handle, handle));
    }
    printf("\n");
    return 0;
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
    if (argc > 2 && strcmp(argv[2], "calls") == 0)
        return print_calls(door);
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
