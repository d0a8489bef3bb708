/*
 * What clang's code calls for the kernels of a program: they are registered before main, and those
 * that the simulator has (driver/kernel.c) are run. See runtime.h.
 */
#include "runtime.h"

#pragma GCC visibility push(default)
void **__hipRegisterFatBinary(const void *code);
void __hipUnregisterFatBinary(void **handle);
void __hipRegisterFunction(void **handle, const void *stub, char *device, const char *name,
                           unsigned limit, void *thread, void *block, dim3 *size, dim3 *grid,
                           int *warp);
/* The device's half of a program, which a compilation for the host alone lacks. */
extern const char __hip_fatbin[];
const char __hip_fatbin[1];
#pragma GCC visibility pop

struct registered {
    const void *stub;
    const char *name; /* as the compiler has it */
    CUfunction function;
    struct registered *next;
};

static struct {
    pthread_mutex_t lock;
    struct registered *first;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- before main, and after --- */

void **__hipRegisterFatBinary(const void *code) {
    static void *handle;
    return &handle;
}

void __hipUnregisterFatBinary(void **handle) {
}

void __hipRegisterFunction(void **handle, const void *stub, char *device, const char *name,
                           unsigned limit, void *thread, void *block, dim3 *size, dim3 *grid,
                           int *warp) {
    struct registered *one = calloc(1, sizeof *one);
    if (!one)
        return;
    pthread_mutex_lock(&state.lock);
    *one = (struct registered){.stub = stub, .name = name, .next = state.first};
    state.first = one;
    pthread_mutex_unlock(&state.lock);
}

/* --- a launch: <<<>>> pushes what is in the brackets, and the kernel's stub pops it --- */

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
} pushed;

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *stream = pushed.stream;
    return hipSuccess;
}

static CUresult load(struct registered *one) {
    char text[256];
    CUmodule module;
    if (one->function)
        return CUDA_SUCCESS;
    snprintf(text, sizeof text, ".version 8.0 .entry %s(", one->name);
    CUresult result = cuModuleLoadData(&module, text);
    if (result == CUDA_SUCCESS)
        result = cuModuleGetFunction(&one->function, module, one->name);
    return result;
}

static hipError_t find(const void *stub, CUfunction *function) {
    pthread_mutex_lock(&state.lock);
    struct registered *one = state.first;
    while (one && one->stub != stub)
        one = one->next;
    const CUresult result = one ? load(one) : CUDA_SUCCESS;
    if (one)
        *function = one->function;
    pthread_mutex_unlock(&state.lock);
    return !one                             ? hipErrorInvalidDeviceFunction
           : result == CUDA_ERROR_NOT_FOUND ? hipErrorNoBinaryForGpu
                                            : hip_code(result);
}

static void tell_of_unknown(void) {
    static const char sentence[] =
        "simulated HIP: a kernel was not run (error 209): kernels of programs need a card\n";
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told) && write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0)
        return;
}

hipError_t hipLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared,
                           hipStream_t stream) {
    CUfunction function = NULL;
    hipError_t code = hip_ready();
    if (code == hipSuccess)
        code = find(stub, &function);
    if (code == hipErrorNoBinaryForGpu)
        tell_of_unknown();
    if (code == hipSuccess)
        code = hip_code(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                       (unsigned)shared, (CUstream)stream, arguments, NULL));
    return hip_answer(code);
}

/* Nothing here loads one. */
ANSWER(hipModuleUnload, (hipModule_t module), module ? hipErrorNotFound : hipErrorInvalidHandle)
