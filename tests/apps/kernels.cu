/*
 * What the tests let a card do. Built to PTX where there is nvcc; where there is none, to a text
 * that only names them, for the simulator, which has its own of each (tests/sim/driver/kernel.c).
 * They may be launched with any grid.
 */
#include <cstdint>

static __device__ uint64_t first() {
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}

static __device__ uint64_t stride() {
    return (uint64_t)gridDim.x * blockDim.x;
}

static __device__ uint64_t now_ns() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Adds all words to *sum. */
extern "C" __global__ void test_read(const uint32_t *from, uint64_t words, uint32_t *sum) {
    uint32_t mine = 0;
    for (uint64_t i = first(); i < words; i += stride())
        mine += from[i];
    atomicAdd(sum, mine);
}

extern "C" __global__ void test_write(uint32_t *to, uint64_t words, uint32_t value) {
    for (uint64_t i = first(); i < words; i += stride())
        to[i] = value;
}

/* As test_write, with parameters of other sizes. */
extern "C" __global__ void test_last(uint32_t value, uint64_t words, uint32_t *to) {
    for (uint64_t i = first(); i < words; i += stride())
        to[i] = value;
}

extern "C" __global__ void test_add(uint32_t *to, uint64_t words, uint32_t value) {
    for (uint64_t i = first(); i < words; i += stride())
        to[i] += value;
}

/* Reads `touch` again and again until the time is over. What it adds to *sum says nothing. */
extern "C" __global__ void test_spin(const uint32_t *touch, uint64_t words, uint64_t nanoseconds,
                                     uint32_t *sum) {
    const volatile uint32_t *from = touch;
    const uint64_t start = now_ns();
    uint32_t mine = 0;
    while (now_ns() - start < nanoseconds)
        for (uint64_t i = first(); i < words; i += stride())
            mine += from[i];
    atomicAdd(sum, mine);
}
