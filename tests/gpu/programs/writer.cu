// An ordinary CUDA program: a kernel fills a buffer. With "wait" it frees it after a line on its
// input and tells whether each word was added to once by then, without it frees at once.
#include "kernels.hpp"

#include <cstring>

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20, count = bytes / 4;
    uint32_t *buffer;
    use_device();
    check(cudaMalloc((void **)&buffer, bytes), "cudaMalloc");
    fill(buffer, count, 7);
    check(cudaDeviceSynchronize(), "fill");
    printf("writer filled %zu MiB\n", bytes >> 20);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "wait") == 0) {
        (void)getchar();
        printf("writer sees the reader's kernel in %s of its buffer\n",
               how_much(count_words(buffer, count, 7, 1), count));
    }
    check(cudaFree(buffer), "cudaFree");
    printf("writer freed\n");
    return 0;
}
