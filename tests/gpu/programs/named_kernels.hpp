// named_kernels.hpp - the kernels of tests/apps/kernels.cu, asked for by name through the driver's
// API: the same on a card and on the simulator, which has its own of these names. KERNELS in the
// environment is their text. They are launched in the runtime's context.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>

class NamedKernels {
  public:
    NamedKernels() {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        const char *path = getenv("KERNELS");
        std::ifstream file(path ? path : "");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        if (!driver || text.empty())
            return;
        find(driver, "cuModuleLoadData", load);
        find(driver, "cuModuleGetFunction", function);
        find(driver, "cuLaunchKernel", launch);
        loaded = load(&module, text.c_str()) == CUDA_SUCCESS;
    }

    // (memory, how many words, a third) as all of them want it; the code of the launch.
    int run(const char *name, const void *memory, uint64_t words, void *third,
            cudaStream_t stream = nullptr) {
        CUfunction kernel;
        if (!loaded || function(&kernel, module, name) != CUDA_SUCCESS)
            return -1;
        return run(kernel, memory, words, third, stream);
    }
    int run(CUfunction kernel, const void *memory, uint64_t words, void *third,
            cudaStream_t stream) const {
        void *arguments[] = {&memory, &words, third};
        return launch(kernel, words ? 64 : 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
    }
    // Reads some words again and again for so long.
    int spin(CUfunction kernel, const void *memory, uint64_t nanoseconds, uint32_t *sum,
             cudaStream_t stream) const {
        uint64_t words = 1024;
        void *arguments[] = {&memory, &words, &nanoseconds, &sum};
        return launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
    }
    CUfunction named(const char *name) const {
        CUfunction kernel = nullptr;
        if (!loaded || function(&kernel, module, name) != CUDA_SUCCESS) {
            printf("no kernel %s in $KERNELS\n", name);
            exit(3);
        }
        return kernel;
    }

  private:
    template <class Function> static void find(void *driver, const char *name, Function &function) {
        *(void **)(void *)&function = dlsym(driver, name);
    }

    decltype(&cuModuleLoadData) load = nullptr;
    decltype(&cuModuleGetFunction) function = nullptr;
    decltype(&cuLaunchKernel) launch = nullptr;
    CUmodule module = nullptr;
    bool loaded = false;
};
