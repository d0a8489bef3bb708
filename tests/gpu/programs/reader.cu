// An ordinary CUDA program: a kernel reads a buffer that this program never filled, and another
// adds 1 to it. Told to "look" it adds nothing, and keeps the buffer until its input ends.
#include "kernels.hpp"

#include <cstring>

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20, count = bytes / 4;
    const bool look = argc > 2 && strcmp(argv[2], "look") == 0;
    uint32_t *buffer;
    use_device();
    check(cudaMalloc((void **)&buffer, bytes), "cudaMalloc");
    const size_t seen = count_words(buffer, count, 7, 0);
    if (!look)
        add(buffer, count, 1);
    check(cudaDeviceSynchronize(), "add");
    printf("reader found %s of what the writer's kernel wrote\n", how_much(seen, count));
    fflush(stdout);
    while (look && getchar() != EOF)
        continue;
    check(cudaFree(buffer), "cudaFree");
    return seen == count ? 0 : 2;
}
