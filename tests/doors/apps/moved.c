/*
 * moved.c - a runtime that is unloaded, and another at its place that has its functions elsewhere.
 * Built three times: as the program, and as the two runtimes (MOVED_FIRST, MOVED_SECOND).
 */
#if defined(MOVED_FIRST) || defined(MOVED_SECOND)
int cudaFree(void *pointer);
int cudaIpcCloseMemHandle(void *pointer);
int moved_place(void);

int moved_place(void) {
    return 0;
}

#ifdef MOVED_SECOND
int cudaIpcCloseMemHandle(void *pointer) {
    return pointer ? 202 : 2;
}
#endif

int cudaFree(void *pointer) {
    return pointer ? 101 : 1;
}

#ifdef MOVED_FIRST
int cudaIpcCloseMemHandle(void *pointer) {
    return pointer ? 202 : 2;
}
#endif
#else
#include "../../common/system_headers.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* gpushare's own, where it is preloaded. */
__attribute__((weak)) int cudaFree(void *pointer);

int main(int argc, char **argv) {
    void *place = NULL;
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
        if (!library) {
            puts(dlerror());
            return 2;
        }
        void *now = dlsym(library, "moved_place");
        const int answer = cudaFree((void *)8);
        printf("%s: %d\n", place && place != now ? "apart" : "there", answer);
        place = now;
        dlclose(library);
    }
    return 0;
}
#endif
