/* The tests' kernels; see kernel.h. */
#include "kernel.h"

#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

static CUfunction read_words, write_words, add_words, spin;
static CUdeviceptr scrap; /* what nobody asks for */

static CUresult launch(CUstream stream, CUfunction function, void **arguments) {
    return gpu.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, NULL);
}

CUresult kernel_read(CUstream stream, CUdeviceptr from, uint64_t words, CUdeviceptr sum) {
    return launch(stream, read_words, (void *[]){&from, &words, &sum});
}

CUresult kernel_write(CUstream stream, CUdeviceptr to, uint64_t words, uint32_t value) {
    return launch(stream, write_words, (void *[]){&to, &words, &value});
}

CUresult kernel_add(CUstream stream, CUdeviceptr to, uint64_t words, uint32_t value) {
    return launch(stream, add_words, (void *[]){&to, &words, &value});
}

CUresult kernel_spin_for(CUstream stream, CUdeviceptr touch, uint64_t words, uint64_t ns) {
    return launch(stream, spin, (void *[]){&touch, &words, &ns, &scrap});
}

CUresult kernel_spin(CUstream stream, CUdeviceptr touch, uint64_t words) {
    return kernel_spin_for(stream, touch, words, SPIN_NS);
}

/* The file's text, in a buffer of its own. */
static const char *read_file(void) {
    static char path[4096], text[1 << 16];
    char name[4096 + 32];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    snprintf(name, sizeof name, "%s/apps/kernels.ptx", dirname(path));
    FILE *file = length > 0 ? fopen(name, "re") : NULL;
    if (!file) {
        fprintf(stderr, "conformance: no %s\n", name);
        return NULL;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

CUresult kernels_module(CUmodule *module) {
    const char *text = read_file();
    return text ? gpu.cuModuleLoadData(module, text) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult kernels_load(void) {
    const struct {
        const char *name;
        CUfunction *function;
    } wanted[] = {{"test_read", &read_words},
                  {"test_write", &write_words},
                  {"test_add", &add_words},
                  {"test_spin", &spin}};
    CUmodule module;
    CUresult result = kernels_module(&module);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !result; i++)
        result = gpu.cuModuleGetFunction(wanted[i].function, module, wanted[i].name);
    if (!result)
        result = gpu.cuMemAlloc_v2(&scrap, 4096);
    if (!result)
        result = gpu.cuMemsetD8_v2(scrap, 0, 4096);
    if (result)
        return result;
    kernel_read(NULL, scrap, 1, scrap);
    kernel_write(NULL, scrap, 1, 0);
    kernel_add(NULL, scrap, 1, 0);
    kernel_spin_for(NULL, 0, 0, 0);
    return gpu.cuCtxSynchronize();
}
