/* An empty kernel, from source that the driver compiles. The simulator has its own of the name,
 * which does nothing with no words. */
#include "measure.h"

#include <cuda.h>

static const char empty[] = ".version 7.0\n"
                            ".target sm_70\n"
                            ".address_size 64\n"
                            ".visible .entry test_write(.param .u64 to, .param .u64 words,\n"
                            ".param .u32 value) { ret; }\n";

/* They do nothing with a struct of so many words. */
static const char wide[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry test_words_8(.param .align 8 .b8 a[64]) { ret; }\n"
                           ".visible .entry test_words_64(.param .align 8 .b8 a[512]) { ret; }\n"
                           ".visible .entry test_words_512(.param .align 8 .b8 a[4096]) { ret; }\n";

enum { STREAMS = 4, WORDS = 512 };

static struct {
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *get;
    __typeof__(cuLaunchKernel) *launch;
    __typeof__(cuCtxSynchronize) *wait;
    __typeof__(cuStreamCreate) *stream;
    CUfunction kernel;
    CUstream streams[STREAMS]; /* made when they are first used */
    unsigned launched;
} gpu;

bool launch_available(void) {
    CUmodule module;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)(void *)&gpu.load = dlsym(library, "cuModuleLoadData");
    *(void **)(void *)&gpu.get = dlsym(library, "cuModuleGetFunction");
    *(void **)(void *)&gpu.launch = dlsym(library, "cuLaunchKernel");
    *(void **)(void *)&gpu.wait = dlsym(library, "cuCtxSynchronize");
    *(void **)(void *)&gpu.stream = dlsym(library, "cuStreamCreate");
    return gpu.load && gpu.get && gpu.launch && gpu.wait && gpu.stream &&
           gpu.load(&module, empty) == 0 && gpu.get(&gpu.kernel, module, "test_write") == 0;
}

/* Waits now and then, so that the queue never fills. */
static void start(CUfunction kernel, CUstream stream, void **arguments) {
    check((cudaError_t)gpu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
          "cuLaunchKernel");
    if (++gpu.launched % 256 == 0)
        check((cudaError_t)gpu.wait(), "cuCtxSynchronize");
}

static void launch(CUstream stream) {
    static uint64_t nowhere, none;
    static uint32_t nothing;
    static void *arguments[] = {&nowhere, &none, &nothing};
    start(gpu.kernel, stream, arguments);
}

static void launch_wide(const char *name) {
    static uint64_t words[WORDS];
    static void *arguments[] = {words};
    static CUfunction kernel;
    CUmodule module;
    if (!kernel && (gpu.load(&module, wide) != 0 || gpu.get(&kernel, module, name) != 0))
        check(cudaErrorInvalidKernelImage, name);
    start(kernel, NULL, arguments);
}

void launch_words_8(void) {
    launch_wide("test_words_8");
}

void launch_words_64(void) {
    launch_wide("test_words_64");
}

void launch_words_512(void) {
    launch_wide("test_words_512");
}

void launch_empty(void) {
    launch(NULL);
}

void launch_in_turn(void) {
    CUstream *const stream = &gpu.streams[gpu.launched % STREAMS];
    if (!*stream)
        check((cudaError_t)gpu.stream(stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    launch(*stream);
}
