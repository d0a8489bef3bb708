/* The driver, by dlopen; see gpu.h. */
#include "gpu.h"

#include "../../common/system_headers.h"

struct gpu gpu;

int gpu_load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "conformance: %s\n", dlerror());
        return 0;
    }
#define X(name)                                                                                    \
    if (!(*(void **)(void *)&gpu.name = dlsym(library, #name))) {                                  \
        fprintf(stderr, "conformance: no %s in libcuda.so.1\n", #name);                            \
        return 0;                                                                                  \
    }
    GPU_CALLS(X)
#undef X
    return 1;
}
