// throwing.cpp - exceptions around CUDA calls, and one thrown right through a hooked call by a
// runtime that is built from this file too (THROWING_RUNTIME).
#include <cuda_runtime_api.h>

#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#ifdef THROWING_RUNTIME
extern "C" cudaError_t cudaMalloc(void **, size_t size) {
    if (size == 0)
        throw std::bad_alloc();
    return cudaErrorNotSupported;
}
#else
static void allocate(size_t size) {
    void *pointer = nullptr;
    const cudaError_t error = cudaMalloc(&pointer, size);
    if (error != cudaSuccess)
        throw std::runtime_error(std::to_string(error));
}

int main() {
    for (size_t size = 0; size < 3; size++) {
        try {
            allocate(size);
            std::puts("none");
        } catch (const std::bad_alloc &) {
            std::puts("bad_alloc");
        } catch (const std::exception &error) {
            std::puts(error.what());
        }
    }
    return 0;
}
#endif
