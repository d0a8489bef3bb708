/* weak.c - a program that uses CUDA only where something has brought it, as a plugin does. */
#include "../../common/system_headers.h"

__attribute__((weak)) int cudaMalloc(void **out, size_t size);

int main(void) {
    void *p;
    printf("linked %s, found %s", cudaMalloc ? "yes" : "no",
           dlsym(RTLD_DEFAULT, "cudaMalloc") ? "yes" : "no");
    if (cudaMalloc)
        printf(", answers %d", cudaMalloc(&p, 4096));
    puts("");
    return 0;
}
