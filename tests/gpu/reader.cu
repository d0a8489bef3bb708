// An ordinary CUDA program: a kernel reads a buffer that this program never filled, and adds 1 to
// it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

__global__ void read_and_add(uint32_t *data, size_t count, uint32_t seed,
                             unsigned long long *hits) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        if (data[i] == ((uint32_t)(i * 2654435761u) ^ seed)) {
            data[i]++;
            atomicAdd(hits, 1ull);
        }
}

static void check(cudaError_t error, const char *call) {
    if (error != cudaSuccess) {
        printf("reader: %s: %s\n", call, cudaGetErrorName(error));
        exit(1);
    }
}

int main(int, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20, count = bytes / 4;
    uint32_t *buffer;
    unsigned long long *hits, seen = 0;
    check(cudaMalloc(&buffer, bytes), "cudaMalloc");
    check(cudaMalloc(&hits, sizeof(*hits)), "cudaMalloc");
    check(cudaMemset(hits, 0, sizeof(*hits)), "cudaMemset");
    read_and_add<<<1024, 256>>>(buffer, count, 7, hits);
    check(cudaMemcpy(&seen, hits, sizeof(seen), cudaMemcpyDeviceToHost), "read_and_add");
    printf("reader found %s of what the writer's kernel wrote\n", seen == count ? "all"
                                                                  : seen        ? "a part"
                                                                                : "nothing");
    check(cudaFree(hits), "cudaFree");
    check(cudaFree(buffer), "cudaFree");
    return seen == count ? 0 : 2;
}
