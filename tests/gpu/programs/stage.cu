// An ordinary CUDA program, one of a chain: takes a buffer as it finds it, and makes of it another
// one, each word 1 more. "stage MIB NUMBER [last]"; number 1 finds nothing, the last leaves
// nothing.
#include "kernels.hpp"

#include <cstring>

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20, count = bytes / 4;
    const uint32_t number = (uint32_t)atoi(argv[2]);
    const bool first = number == 1, last = argc > 3 && strcmp(argv[3], "last") == 0;
    uint32_t *in = nullptr, *out = nullptr;
    size_t seen = count;
    if (!first)
        check(cudaMalloc((void **)&in, bytes), "cudaMalloc");
    if (!last)
        check(cudaMalloc((void **)&out, bytes), "cudaMalloc");
    if (first) {
        fill(out, count, 7);
    } else {
        seen = count_words(in, count, 7, number - 2);
        printf("stage %u found %s of the work before it\n", number, how_much(seen, count));
    }
    if (in && out) {
        check(cudaMemcpy(out, in, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
        add(out, count, 1);
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaFree(in), "cudaFree");
    check(cudaFree(out), "cudaFree");
    return seen == count ? 0 : 2;
}
