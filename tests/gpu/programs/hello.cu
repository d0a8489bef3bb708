// The smallest program with a kernel.
#include "kernels.hpp"

int main() {
    uint32_t *data;
    check(cudaMalloc((void **)&data, 4096), "cudaMalloc");
    fill(data, 1024, 3);
    printf("hello: %zu words of 1024\n", count_words(data, 1024, 3, 0));
    check(cudaFree(data), "cudaFree");
    return 0;
}
