/*
 * early.c - before the preloaded library's constructor has run: a look-up from the program's
 * preinit array, as sanitizers make them, and CUDA calls from a constructor of a library that the
 * program is linked with (EARLY_LIBRARY).
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

#ifdef EARLY_LIBRARY
int early_codes[3] = {-1, -1, -1};

__attribute__((constructor)) static void early(void) {
    void *pointer = NULL;
    early_codes[0] = (int)cudaMalloc(&pointer, 1000);
    early_codes[1] = (int)cudaFree(pointer);
    early_codes[2] = (int)cudaFree(pointer);
}
#else
extern int early_codes[3];
static int found[2] = {-1, -1};

static void first(void) {
    found[0] = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL;
    found[1] = dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL;
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = first;

int main(void) {
    printf("%d %d: %d %d %d\n", found[0], found[1], early_codes[0], early_codes[1], early_codes[2]);
    return 0;
}
#endif
