// An ordinary CUDA program: a kernel fills a buffer. With "wait" it frees it after a line on its
// input, without at once. Prints what it did.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void fill(uint32_t *out, size_t count, uint32_t seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        out[i] = (uint32_t)(i * 2654435761u) ^ seed;
}

__global__ void count_seen(const uint32_t *in, size_t count, uint32_t seed,
                           unsigned long long *hits) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        if (in[i] == ((uint32_t)(i * 2654435761u) ^ seed) + 1)
            atomicAdd(hits, 1ull);
}

static void check(cudaError_t error, const char *call) {
    if (error != cudaSuccess) {
        printf("writer: %s: %s\n", call, cudaGetErrorName(error));
        exit(1);
    }
}

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20, count = bytes / 4;
    uint32_t *buffer;
    unsigned long long *hits, seen = 0;
    check(cudaMalloc(&buffer, bytes), "cudaMalloc");
    check(cudaMalloc(&hits, sizeof(*hits)), "cudaMalloc");
    check(cudaMemset(hits, 0, sizeof(*hits)), "cudaMemset");
    fill<<<1024, 256>>>(buffer, count, 7);
    check(cudaDeviceSynchronize(), "fill");
    printf("writer filled %zu MiB\n", bytes >> 20);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[2], "wait") == 0) {
        (void)getchar();
        count_seen<<<1024, 256>>>(buffer, count, 7, hits);
        check(cudaMemcpy(&seen, hits, sizeof(seen), cudaMemcpyDeviceToHost), "count_seen");
        printf("writer sees the reader's kernel in %s of its buffer\n", seen == count ? "all"
                                                                        : seen        ? "a part"
                                                                                      : "nothing");
    }
    check(cudaFree(buffer), "cudaFree");
    printf("writer freed\n");
    return 0;
}
