/*
 * What nvcc's code calls for kernels and device variables of a .cu file: they are registered
 * before main, and a launch is refused, for there is nothing here that runs them.
 */

#include "call.h"

typedef void **fat_binary;

/* --- before main, and after --- */

fat_binary __cudaRegisterFatBinary(void *code);
void __cudaRegisterFatBinaryEnd(fat_binary handle);
void __cudaUnregisterFatBinary(fat_binary handle);
void __cudaRegisterFunction(fat_binary handle, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *size, void *grid,
                            int *warp);
void __cudaRegisterVar(fat_binary handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(fat_binary handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
char __cudaInitModule(fat_binary handle);

fat_binary __cudaRegisterFatBinary(void *code) {
    static void *handle;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(fat_binary handle) {
}

void __cudaUnregisterFatBinary(fat_binary handle) {
}

void __cudaRegisterFunction(fat_binary handle, const char *host, char *device, const char *name,
                            int limit, void *thread, void *block, void *size, void *grid,
                            int *warp) {
}

void __cudaRegisterVar(fat_binary handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global) {
}

void __cudaRegisterManagedVar(fat_binary handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global) {
}

char __cudaInitModule(fat_binary handle) {
    return 1;
}

/* --- a launch: <<<>>> pushes what is in the brackets, and the kernel's stub pops it --- */

struct configuration {
    dim3 grid, block;
    size_t shared;
    struct CUstream_st *stream;
};
static _Thread_local struct configuration pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream) {
    pushed = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof(pushed.stream));
    return cudaSuccess;
}

static cudaError_t refuse(void) {
    static const char sentence[] =
        "simulated CUDA: a kernel was not run (error 209): kernels of .cu files need a card\n";
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told) &&
        write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
        return runtime_end(cudaErrorNoKernelImageForDevice);
    return runtime_end(cudaErrorNoKernelImageForDevice);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    memcpy(kernel, &function, sizeof(*kernel));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    return refuse();
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream) {
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                       void **arguments, size_t shared, cudaStream_t stream) {
    return refuse();
}

cudaError_t CUDARTAPI cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block,
                                            void **arguments, size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel(function, grid, block, arguments, shared, stream);
}
