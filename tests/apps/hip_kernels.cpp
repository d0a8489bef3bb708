// hip_kernels.cpp - a HIP program as people write them, for clang: two processes share a buffer by
// a handle, and each runs a kernel on it. The numbers are right, or it fails.
//
// It is built as AMD's own tests of IPC can be, with clang++ -x hip, and its kernels are of their
// names: on the simulated runtime those are what runs.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define MUST(call) must((call), #call)

namespace {

constexpr int COUNT = 1024, THREADS = 256;
constexpr unsigned LAZY = 1; // hipIpcMemLazyEnablePeerAccess from 6.0 on; 0 in older headers

void fail(const char *what, int code) {
    printf("%s: %d\n", what, code);
    exit(1);
}

void must(hipError_t code, const char *call) {
    if (code != hipSuccess)
        fail(call, code);
}

} // namespace

__global__ void computeKernel(int *to, int *from, int by) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    to[i] = from[i] / by;
}

// Of floats and, as people also have it, of ints.
__global__ void vectorAdd(int *a, int *b, int *to, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        to[i] = a[i] + b[i];
}

__global__ void vectorAdd(const float *a, const float *b, float *to, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        to[i] = a[i] + b[i];
}

namespace {

template <typename T> T *upload(const std::vector<T> &numbers, size_t count) {
    T *memory = nullptr;
    MUST(hipMalloc(&memory, count * sizeof(T)));
    MUST(hipMemcpy(memory, numbers.data(), numbers.size() * sizeof(T), hipMemcpyHostToDevice));
    return memory;
}

template <typename T> void expect(const T *memory, T each) {
    std::vector<T> numbers(COUNT);
    MUST(hipMemcpy(numbers.data(), memory, COUNT * sizeof(T), hipMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        if (numbers[static_cast<size_t>(i)] != static_cast<T>(i) * each)
            fail("a wrong number at", i);
}

template <typename T> void add_alone() {
    std::vector<T> numbers(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        numbers[i] = static_cast<T>(i);
    T *memory = upload(numbers, 2 * COUNT);
    vectorAdd<<<dim3(COUNT / THREADS), dim3(THREADS)>>>(memory, memory, memory + COUNT, COUNT);
    MUST(hipGetLastError());
    expect(memory + COUNT, static_cast<T>(2));
    MUST(hipFree(memory));
}

// In the buffer lie i * 12, then what the parent and the child make of it.
void run_parent(int to, int from) {
    hipEvent_t start, stop;
    hipIpcMemHandle_t handle;
    float milliseconds = -1;
    char turn;
    std::vector<int> numbers(COUNT);
    for (int i = 0; i < COUNT; i++)
        numbers[static_cast<size_t>(i)] = i * 12;
    int *memory = upload(numbers, 3 * COUNT);
    MUST(hipEventCreate(&start));
    MUST(hipEventCreate(&stop));
    MUST(hipEventRecord(start, nullptr));
    computeKernel<<<COUNT / THREADS, THREADS>>>(memory + COUNT, memory, 2);
    MUST(hipGetLastError());
    MUST(hipEventRecord(stop, nullptr));
    MUST(hipEventSynchronize(stop));
    MUST(hipEventElapsedTime(&milliseconds, start, stop));
    if (milliseconds < 0)
        fail("time runs backwards", 0);
    MUST(hipIpcGetMemHandle(&handle, memory));
    if (write(to, &handle, sizeof(handle)) != sizeof(handle) || read(from, &turn, 1) != 1)
        fail("the child is gone", 0);
    expect(memory + 2 * COUNT, 2);
    MUST(hipEventDestroy(start));
    MUST(hipEventDestroy(stop));
    MUST(hipFree(memory));
}

void run_child(int to, int from) {
    hipIpcMemHandle_t handle;
    void *opened = nullptr;
    if (read(from, &handle, sizeof(handle)) != sizeof(handle))
        fail("the parent is gone", 0);
    MUST(hipIpcOpenMemHandle(&opened, handle, LAZY));
    int *memory = static_cast<int *>(opened);
    expect(memory + COUNT, 6);
    hipLaunchKernelGGL(computeKernel, dim3(COUNT / THREADS), dim3(THREADS), 0, nullptr,
                       memory + 2 * COUNT, memory + COUNT, 3);
    MUST(hipGetLastError());
    MUST(hipDeviceSynchronize());
    MUST(hipIpcCloseMemHandle(opened));
    if (write(to, "", 1) != 1)
        fail("the parent is gone", 0);
}

} // namespace

int main() {
    hipDeviceProp_t properties;
    int down[2], up[2], status = 0;
    if (pipe(down) != 0 || pipe(up) != 0)
        return 1;
    const pid_t child = fork(); // before HIP is touched
    if (child == 0) {
        run_child(up[1], down[0]);
        return 0;
    }
    MUST(hipGetDeviceProperties(&properties, 0));
    add_alone<float>();
    add_alone<int>();
    run_parent(down[1], up[0]);
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("the child", status);
    printf("all numbers are right on %s\n", properties.name);
    return 0;
}
