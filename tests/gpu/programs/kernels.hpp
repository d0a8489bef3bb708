// kernels.hpp - what the programs here do to their buffers: kernels where nvcc compiles them, and
// the same by copies where a plain compiler does, for the simulated driver, which has no kernels.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <vector>

static void check(cudaError_t error, const char *call) {
    if (error != cudaSuccess) {
        printf("%s: %s\n", call, cudaGetErrorName(error));
        fflush(stdout);
        exit(1);
    }
}

#ifdef __CUDACC__
#define BOTH __host__ __device__
#else
#define BOTH
#endif

// What fill writes.
BOTH static inline uint32_t word_at(size_t i, uint32_t seed) {
    return (uint32_t)(i * 2654435761u) ^ seed;
}

#ifdef __CUDACC__
#define EACH(i, count)                                                                             \
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;                                      \
    i < (count);                                                                                   \
    i += (size_t)gridDim.x * blockDim.x

__global__ static void fill_kernel(uint32_t *out, size_t count, uint32_t seed) {
    for (EACH(i, count))
        out[i] = word_at(i, seed);
}

__global__ static void add_kernel(uint32_t *data, size_t count, uint32_t more) {
    for (EACH(i, count))
        data[i] += more;
}

__global__ static void count_kernel(const uint32_t *in, size_t count, uint32_t seed, uint32_t plus,
                                    unsigned long long *hits) {
    unsigned long long mine = 0;
    for (EACH(i, count))
        mine += in[i] == word_at(i, seed) + plus;
    atomicAdd(hits, mine);
}

__global__ static void sum_kernel(const uint32_t *in, size_t count, unsigned long long *sum) {
    unsigned long long mine = 0;
    for (EACH(i, count))
        mine += (i + 1) * in[i];
    atomicAdd(sum, mine);
}

static inline void fill(uint32_t *out, size_t count, uint32_t seed, cudaStream_t stream = 0) {
    fill_kernel<<<1024, 256, 0, stream>>>(out, count, seed);
    check(cudaGetLastError(), "fill");
}

static inline void add(uint32_t *data, size_t count, uint32_t more, cudaStream_t stream = 0) {
    add_kernel<<<1024, 256, 0, stream>>>(data, count, more);
    check(cudaGetLastError(), "add");
}

// How many words are what fill wrote, and `plus` more.
static inline size_t count_words(const uint32_t *in, size_t count, uint32_t seed, uint32_t plus) {
    unsigned long long *hits, seen = 0;
    check(cudaMalloc(&hits, sizeof(*hits)), "cudaMalloc");
    check(cudaMemset(hits, 0, sizeof(*hits)), "cudaMemset");
    count_kernel<<<1024, 256>>>(in, count, seed, plus, hits);
    check(cudaMemcpy(&seen, hits, sizeof(seen), cudaMemcpyDeviceToHost), "count_words");
    check(cudaFree(hits), "cudaFree");
    return seen;
}

// A sum in which each word's place counts, too.
static inline uint64_t sum_words(const uint32_t *in, size_t count) {
    unsigned long long *sum, seen = 0;
    check(cudaMalloc(&sum, sizeof(*sum)), "cudaMalloc");
    check(cudaMemset(sum, 0, sizeof(*sum)), "cudaMemset");
    sum_kernel<<<1024, 256>>>(in, count, sum);
    check(cudaMemcpy(&seen, sum, sizeof(seen), cudaMemcpyDeviceToHost), "sum_words");
    check(cudaFree(sum), "cudaFree");
    return seen;
}
#else
static inline std::vector<uint32_t> copy_of(const uint32_t *data, size_t count) {
    std::vector<uint32_t> copy(count);
    check(cudaMemcpy(copy.data(), data, count * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return copy;
}

static inline void put_back(uint32_t *data, const std::vector<uint32_t> &copy,
                            cudaStream_t stream) {
    check(cudaMemcpyAsync(data, copy.data(), copy.size() * 4, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static inline void fill(uint32_t *out, size_t count, uint32_t seed, cudaStream_t stream = nullptr) {
    std::vector<uint32_t> copy(count);
    for (size_t i = 0; i < count; i++)
        copy[i] = word_at(i, seed);
    put_back(out, copy, stream);
}

static inline void add(uint32_t *data, size_t count, uint32_t more, cudaStream_t stream = nullptr) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    std::vector<uint32_t> copy = copy_of(data, count);
    for (uint32_t &word : copy)
        word += more;
    put_back(data, copy, stream);
}

static inline size_t count_words(const uint32_t *in, size_t count, uint32_t seed, uint32_t plus) {
    const std::vector<uint32_t> copy = copy_of(in, count);
    size_t seen = 0;
    for (size_t i = 0; i < count; i++)
        seen += copy[i] == word_at(i, seed) + plus;
    return seen;
}

static inline uint64_t sum_words(const uint32_t *in, size_t count) {
    const std::vector<uint32_t> copy = copy_of(in, count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (i + 1) * copy[i];
    return sum;
}
#endif

static inline const char *how_much(size_t seen, size_t count) {
    return seen == count ? "all" : seen ? "a part" : "nothing";
}

// DEVICE=n in the environment: the card to work on.
static inline void use_device() {
    const char *device = getenv("DEVICE");
    if (device)
        check(cudaSetDevice(atoi(device)), "cudaSetDevice");
}
