// statics.cpp - objects whose constructors and destructors use CUDA, before main and after it.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

namespace {

class Buffer {
  public:
    explicit Buffer(const char *name_) : name(name_) {
        const int code = cudaMalloc(&pointer, 4096);
        std::printf("%s made: %d\n", name, code);
    }
    ~Buffer() {
        cudaIpcMemHandle_t handle;
        const int a = cudaIpcGetMemHandle(&handle, pointer), b = cudaFree(pointer);
        std::printf("%s gone: %d %d\n", name, a, b);
        std::fflush(stdout);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

  private:
    const char *name;
    void *pointer = nullptr;
};

Buffer global("global");
thread_local Buffer of_thread("thread's");

} // namespace

int main() {
    static Buffer local("local");
    (void)&of_thread;
    cudaIpcMemHandle_t handle;
    void *pointer = nullptr;
    std::printf("main: %d %d\n", cudaMalloc(&pointer, 4096), cudaIpcGetMemHandle(&handle, pointer));
    return 5;
}
