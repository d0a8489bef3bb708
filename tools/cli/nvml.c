#include "nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static void *nvml_start(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = NULL;
    if (library)
        *(void **)&init = dlsym(library, "nvmlInit_v2");
    return init && init() == 0 ? library : NULL;
}

void *nvml_open(void) {
    static bool tried;
    static void *library;
    if (!tried)
        library = nvml_start();
    tried = true;
    return library;
}
