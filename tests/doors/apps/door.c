/*
 * door.c - goes through the door that its first argument names. Built four times: linked with
 * libcuda (LINKED_DRIVER), with the shared runtime or with the static one (LINKED_RUNTIME), and
 * with nothing.
 */

#include "driver.h"
#include "runtime.h"

static void *library;
static int version;
static unsigned long long flags;
static __typeof__(cuGetProcAddress_v2) *get2;
static __typeof__(cuGetProcAddress) *get1;

/* --- finders --- */

static void *by_handle(const char *name) {
    return dlsym(library, name);
}

static void *by_default(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

static void *by_next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* libcuda's symbols have no version, and dlvsym matches those with any. */
static void *by_version(const char *name) {
    return dlvsym(library, name, "GLIBC_2.2.5");
}

/* cuGetProcAddress wants the names of the API, which it turns into the ABI's by version. */
static const char *api_name(const char *name, char buffer[64]) {
    const size_t length = strlen(name), suffix = strlen("_v2");
    snprintf(buffer, 64, "%s", name);
    if (length > suffix && strcmp(name + length - suffix, "_v2") == 0)
        buffer[length - suffix] = '\0';
    return buffer;
}

static void *by_get2(const char *name) {
    char buffer[64];
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    const CUresult result = get2(api_name(name, buffer), &found, version, flags, &status);
    return result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? found : NULL;
}

static void *by_get1(const char *name) {
    char buffer[64];
    void *found = NULL;
    return get1(api_name(name, buffer), &found, version, flags) == CUDA_SUCCESS ? found : NULL;
}

/* --- doors --- */

static int through_handle(int mode) {
    library = dlopen("libcuda.so.1", mode);
    return library ? driver_walk_found(by_handle) : 1;
}

static int through_get1(void) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    get1 = (__typeof__(get1))dlsym(library, "cuGetProcAddress");
    return driver_walk_found(by_get1);
}

/* With `again`, by what cuGetProcAddress finds for its own name. */
static int through_get2(bool again) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    get2 = (__typeof__(get2))dlsym(library, "cuGetProcAddress_v2");
    if (again)
        get2 = (__typeof__(get2))by_get2("cuGetProcAddress");
    return driver_walk_found(by_get2);
}

static int print_default(void) {
    dlerror();
    void *found = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    const char *error = dlerror();
    printf("%s: %s\n", found ? "found" : "null", error ? error : "no error");
    return 0;
}

/* What the main program finds of a libcuda that is not in its scope. */
static int print_default_local(void) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return print_default();
}

static int through_plugin(const char *path, int mode) {
    void *plugin = dlopen(path, mode);
    if (!plugin) {
        puts(dlerror());
        return 1;
    }
    int (*walk_plugin)(void) = (int (*)(void))dlsym(plugin, "plugin_walk");
    return walk_plugin();
}

static int through_next(void) {
    return driver_walk_found(by_next);
}

static int through(const char *door, char **rest) {
    const char *path = rest[0] ? rest[0] : "";
    if (strcmp(door, "handle") == 0)
        return through_handle(RTLD_NOW | RTLD_LOCAL);
    if (strcmp(door, "deepbind") == 0)
        return through_handle(RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (strcmp(door, "dlvsym") == 0)
        return library = dlopen("libcuda.so.1", RTLD_NOW), driver_walk_found(by_version);
    if (strcmp(door, "global") == 0)
        return library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL),
               driver_walk_found(by_default);
    if (strcmp(door, "runtime-global") == 0)
        return dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL), runtime_walk_found(by_default);
    if (strcmp(door, "runtime-self") == 0)
        return dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL), library = dlopen(NULL, RTLD_NOW),
                                                                  runtime_walk_found(by_handle);
    if (strcmp(door, "default") == 0)
        return driver_walk_found(by_default);
    if (strcmp(door, "self") == 0)
        return library = dlopen(NULL, RTLD_NOW), driver_walk_found(by_handle);
    if (strcmp(door, "next") == 0)
        return through_next();
    if (strcmp(door, "print-default") == 0)
        return print_default();
    if (strcmp(door, "print-local") == 0)
        return print_default_local();
    if (strcmp(door, "plugin") == 0)
        return through_plugin(path, RTLD_NOW | RTLD_LOCAL);
    if (strcmp(door, "plugin-lazy") == 0)
        return through_plugin(path, RTLD_LAZY | RTLD_LOCAL);
    if (strcmp(door, "plugin-deepbind") == 0)
        return through_plugin(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (strcmp(door, "plugin-twice") == 0) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int code = ((int (*)(void))dlsym(plugin, "plugin_walk"))();
        dlclose(plugin);
        return code ? code : through_plugin(path, RTLD_NOW | RTLD_LOCAL);
    }
    version = atoi(path);
    flags = path[0] && rest[1] ? strtoull(rest[1], NULL, 0) : 0;
    if (strcmp(door, "get1") == 0)
        return through_get1();
    if (strcmp(door, "get2") == 0)
        return through_get2(false);
    if (strcmp(door, "get2-self") == 0)
        return through_get2(true);
    return 2;
}

/* --- doors of the linked programs --- */

#ifdef LINKED_RUNTIME
static void *by_entry(const char *name) {
    char buffer[64];
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult status;
    const cudaError_t error =
        version ? cudaGetDriverEntryPointByVersion(api_name(name, buffer), &found,
                                                   (unsigned)version, flags, &status)
                : cudaGetDriverEntryPoint(api_name(name, buffer), &found, flags, &status);
    return error == cudaSuccess ? found : NULL;
}
#endif

int main(int argc, char **argv) {
    const char *door = argc > 1 ? argv[1] : "";
#ifdef LINKED_DRIVER
    if (strcmp(door, "linked") == 0)
        return driver_walk_linked();
#endif
#ifdef LINKED_RUNTIME
    if (strcmp(door, "linked") == 0)
        return runtime_walk_linked();
    if (strcmp(door, "runtime-default") == 0)
        return runtime_walk_found(by_default);
    if (strcmp(door, "entry") == 0) {
        version = argc > 2 ? atoi(argv[2]) : 0;
        flags = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
        return driver_walk_found(by_entry);
    }
#endif
    return argc > 1 ? through(door, argv + 2) : 2;
}
