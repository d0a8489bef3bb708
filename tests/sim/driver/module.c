/*
 * Modules, their functions, and launches. A module is PTX text, or a fat binary that has it
 * uncompressed, of which only the names of its entries are looked at: what they do is kernel.c's.
 */
#include "module.h"
#include "kernel.h"
#include "state.h"
#include "stream.h"

enum { NAME_MOST = 128, MOST_THREADS = 1024, ARGUMENTS = 256 };

/* A function's handle is given again at once. */
static struct CUfunc_st *ended;

struct CUmod_st {
    char *text;
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    const struct kernel *kernel;
    unsigned threads[3]; /* of a block, and arguments side by side: for launches of the old kind */
    unsigned char arguments[ARGUMENTS];
    struct CUfunc_st *next;
};

/* --- modules --- */

/* What a file of nvcc's begins with that has code for several cards. */
#define FAT_BINARY "\x50\xed\x55\xba"
struct fat_binary {
    char magic[sizeof FAT_BINARY - 1];
    uint16_t version, header;
    uint64_t size; /* behind the header */
};

static char *text_of(const void *image) {
    struct fat_binary fat;
    if (strncmp(image, FAT_BINARY, sizeof fat.magic))
        return strdup(image);
    memcpy(&fat, image, sizeof fat);
    const size_t size = fat.header + fat.size;
    char *text = malloc(size + 1);
    if (!text)
        return NULL;
    memcpy(text, image, size);
    for (size_t i = 0; i < size; i++)
        if (!text[i])
            text[i] = ' ';
    text[size] = 0;
    return text;
}

/* A load waits for what runs in its context, and launches of other threads wait for it. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_work(CUcontext context) {
    pthread_mutex_lock(&loading);
    stream_wait_context(context);
    pthread_mutex_unlock(&loading);
}

static void wait_for_loads(void) {
    pthread_mutex_lock(&loading);
    pthread_mutex_unlock(&loading);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image) {
    CURRENT(context);
    REFUSE(!out || !image, CUDA_ERROR_INVALID_VALUE);
    CUmodule module = calloc(1, sizeof *module);
    if (module)
        module->text = text_of(image);
    if (!module || !module->text) {
        free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!strstr(module->text, ".version")) {
        free(module->text);
        free(module);
        return CUDA_ERROR_INVALID_IMAGE; /* also what is no text at all */
    }
    wait_for_work(context);
    *out = module;
    return CUDA_SUCCESS;
}

CALL(cuModuleLoadDataEx,
     (CUmodule * out, const void *image, unsigned int count, CUjit_option *options, void **values),
     cuModuleLoadData(out, image))

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    CURRENT(context);
    REFUSE(!module, CUDA_ERROR_INVALID_HANDLE);
    state_lock();
    while (module->functions) {
        struct CUfunc_st *function = module->functions;
        module->functions = function->next;
        function->next = ended;
        ended = function;
    }
    state_unlock();
    free(module->text);
    free(module);
    return CUDA_SUCCESS;
}

static bool has_entry(const struct CUmod_st *module, const char *name) {
    char entry[NAME_MOST];
    int length = snprintf(entry, sizeof entry, ".entry %s(", name);
    return length > 0 && (size_t)length < sizeof entry && strstr(module->text, entry);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    CURRENT(context);
    REFUSE(!out || !module || !name, CUDA_ERROR_INVALID_VALUE);
    const struct kernel *kernel = has_entry(module, name) ? kernel_find(name) : NULL;
    REFUSE(!kernel, CUDA_ERROR_NOT_FOUND);
    STATE_LOCKED();
    CUfunction function = ended;
    if (function)
        ended = function->next;
    else
        function = malloc(sizeof *function);
    if (function) {
        *function =
            (struct CUfunc_st){.kernel = kernel, .threads = {1, 1, 1}, .next = module->functions};
        module->functions = function;
        *out = function;
    }
    return function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Each lies at a multiple of its size. */
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                                    size_t *size) {
    TRY(state_check());
    REFUSE(!function || !offset || !kernel_width(function->kernel, index),
           CUDA_ERROR_INVALID_VALUE);
    size_t at = 0;
    for (size_t i = 0; i <= index; i++) {
        const size_t width = kernel_width(function->kernel, i);
        at = (at + width - 1) / width * width;
        *offset = at;
        at += width;
    }
    if (size)
        *size = kernel_width(function->kernel, index);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction function) {
    TRY(state_check());
    REFUSE(!name || !function, CUDA_ERROR_INVALID_VALUE);
    *name = kernel_name(function->kernel);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                    CUfunction function) {
    TRY(state_check());
    REFUSE(!value || !function || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX,
           CUDA_ERROR_INVALID_VALUE);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? MOST_THREADS : 0;
    return CUDA_SUCCESS;
}

/* --- launches --- */

static CUresult run(void *argument) {
    return kernel_run(argument);
}

static CUresult hurt(const void *argument, uint64_t address, uint64_t size) {
    return kernel_uses(argument, address, size) ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static void tell(void *argument, CUgraphNodeParams *what) {
    struct launch *launch = argument;
    for (unsigned i = 0; i < KERNEL_PARAMETERS; i++)
        launch->places[i] = &launch->argument[i];
    what->type = CU_GRAPH_NODE_TYPE_KERNEL;
    what->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = launch->function,
                                                .gridDimX = 1,
                                                .gridDimY = 1,
                                                .gridDimZ = 1,
                                                .blockDimX = 1,
                                                .blockDimY = 1,
                                                .blockDimZ = 1,
                                                .kernelParams = launch->places};
}

static const struct work launching = {.run = run, .hurt = hurt, .tell = tell, .apart = true};

static CUresult plan(CUfunction function, uint64_t threads, void *const *parameters,
                     struct launch **out) {
    struct launch *launch = calloc(1, sizeof *launch);
    CUcontext context;
    CUresult result = context_current(&context);
    if (result || !launch) {
        free(launch);
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    }
    launch->kernel = function->kernel;
    launch->function = function;
    launch->context = context;
    kernel_arguments(launch, threads, parameters);
    *out = launch;
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, CUfunction function, uint64_t threads,
                       void *const *parameters) {
    struct launch *launch;
    TRY(plan(function, threads, parameters, &launch));
    wait_for_loads();
    return stream_submit(stream, &launching, launch);
}

CUresult module_launch_node(const CUDA_KERNEL_NODE_PARAMS_v2 *what, const struct work **work,
                            void **argument) {
    struct launch *launch;
    REFUSE(!what || !what->func || !what->kernelParams, CUDA_ERROR_INVALID_VALUE);
    const uint64_t threads = (uint64_t)what->gridDimX * what->gridDimY * what->gridDimZ *
                             what->blockDimX * what->blockDimY * what->blockDimZ;
    TRY(plan(what->func, threads, what->kernelParams, &launch));
    *work = &launching;
    *argument = launch;
    return CUDA_SUCCESS;
}

/* What the launches differ in: `threads` is of a block, in each direction. */
static CUresult launch(CUfunction function, const unsigned *grid, const unsigned *threads,
                       CUstream named, bool per_thread, void *const *parameters) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!function, CUDA_ERROR_INVALID_HANDLE);
    if (!parameters || !grid[0] || !grid[1] || !grid[2] || !threads[0] || !threads[1] ||
        !threads[2] || (uint64_t)threads[0] * threads[1] * threads[2] > MOST_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t block = (uint64_t)threads[0] * threads[1] * threads[2],
                   blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    return submit(stream, function, blocks * block, parameters);
}

#define LAUNCHES(suffix, per_thread)                                                               \
    CUresult CUDAAPI cuLaunchKernel##suffix(CUfunction function, unsigned int gx, unsigned int gy, \
                                            unsigned int gz, unsigned int bx, unsigned int by,     \
                                            unsigned int bz, unsigned int shared, CUstream stream, \
                                            void **parameters, void **extra) {                     \
        return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, stream,        \
                      per_thread, parameters);                                                     \
    }                                                                                              \
    CUresult CUDAAPI cuLaunchCooperativeKernel##suffix(                                            \
        CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,   \
        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,                    \
        void **parameters) {                                                                       \
        return cuLaunchKernel##suffix(function, gx, gy, gz, bx, by, bz, shared, stream,            \
                                      parameters, NULL);                                           \
    }                                                                                              \
    CUresult CUDAAPI cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function,   \
                                              void **parameters, void **extra) {                   \
        return config ? cuLaunchKernel##suffix(                                                    \
                            function, config->gridDimX, config->gridDimY, config->gridDimZ,        \
                            config->blockDimX, config->blockDimY, config->blockDimZ,               \
                            config->sharedMemBytes, config->hStream, parameters, extra)            \
                      : CUDA_ERROR_INVALID_VALUE;                                                  \
    }

LAUNCHES(, false)
LAUNCHES(_ptsz, true)

/* One after the other. */
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches,
                                                      unsigned int count, unsigned int flags) {
    CUresult result = launches && count && flags <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; !result && i < count; i++) {
        const CUDA_LAUNCH_PARAMS *one = &launches[i];
        REFUSE(!one->hStream, CUDA_ERROR_INVALID_VALUE);
        result = cuLaunchKernel(one->function, one->gridDimX, one->gridDimY, one->gridDimZ,
                                one->blockDimX, one->blockDimY, one->blockDimZ, one->sharedMemBytes,
                                one->hStream, one->kernelParams, NULL);
    }
    return result;
}

/* --- launches of the old kind: the function has the block and the arguments --- */

static CUresult check(CUfunction function) {
    CUcontext context;
    const CUresult result = context_current(&context);
    return result || function ? result : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
    TRY(check(function));
    memcpy(function->threads, (int[]){x, y, z}, sizeof function->threads);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuParamSetSize(CUfunction function, unsigned int size) {
    const CUresult result = check(function);
    return !result && size > ARGUMENTS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult CUDAAPI cuParamSetv(CUfunction function, int at, void *value, unsigned int size) {
    TRY(check(function));
    REFUSE(at < 0 || size > ARGUMENTS || (unsigned)at > ARGUMENTS - size, CUDA_ERROR_INVALID_VALUE);
    memcpy(function->arguments + at, value, size);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    void *parameters[KERNEL_PARAMETERS];
    TRY(check(function));
    kernel_places(function->kernel, function->arguments, parameters);
    return launch(function, (unsigned[]){(unsigned)width, (unsigned)height, 1}, function->threads,
                  stream, false, parameters);
}

CALL(cuLaunchGrid, (CUfunction function, int width, int height),
     cuLaunchGridAsync(function, width, height, NULL))
CALL(cuLaunch, (CUfunction function), cuLaunchGrid(function, 1, 1))
