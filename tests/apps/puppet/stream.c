/*
 * stream.c - streams, and kernels on them.
 */
#include "puppet.h"

CUmodule kernels;

/* kernels FILE: of tests/apps/kernels.cu, as PTX */
static int c_kernels(char **w) {
    static char text[LINE];
    size_t left, total;
    const int fd = open(w[1], O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (length < 0 || close(fd) != 0)
        return BAD;
    text[length] = '\0';
    const int code = do_info(&left, &total); /* from here on there is a context */
    return code ? code : (int)CU(cuModuleLoadData)(&kernels, text);
}

COMMAND(unload, (int)CU(cuModuleUnload)(kernels))

/* launch STREAM KERNEL ARGUMENT... */
static int c_launch(char **w) {
    enum { MOST = 8, GRID = 32, THREADS = 128 };
    u64 values[MOST];
    void *places[MOST];
    CUfunction function;
    for (size_t i = 0; i < MOST && w[3 + i]; i++) {
        values[i] = argument(w[3 + i]);
        places[i] = &values[i];
    }
    const int code = (int)CU(cuModuleGetFunction)(&function, kernels, w[2]);
    return code ? code
                : (int)CU(cuLaunchKernel)(function, GRID, 1, 1, THREADS, 1, 1, 0, stream_of(w[1]),
                                          places, NULL);
}

/* spinboth STREAM STREAM NAME WORDS NS NS SUM: on both by one call, which CUDA has deprecated */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int c_spinboth(char **w) {
    enum { THREADS = 128 };
    u64 from = argument(w[3]), words = number(w[4]), sum = argument(w[7]);
    u64 lengths[2] = {number(w[5]), number(w[6])};
    void *values[2][4] = {{&from, &words, &lengths[0], &sum}, {&from, &words, &lengths[1], &sum}};
    CUDA_LAUNCH_PARAMS launches[2];
    CUfunction function;
    const int code = (int)CU(cuModuleGetFunction)(&function, kernels, "test_spin");
    if (code)
        return code;
    for (size_t i = 0; i < 2; i++)
        launches[i] = (CUDA_LAUNCH_PARAMS){.function = function,
                                           .gridDimX = 1,
                                           .gridDimY = 1,
                                           .gridDimZ = 1,
                                           .blockDimX = THREADS,
                                           .blockDimY = 1,
                                           .blockDimZ = 1,
                                           .hStream = stream_of(w[1 + i]),
                                           .kernelParams = values[i]};
    return (int)CU(cuLaunchCooperativeKernelMultiDevice)(launches, 2, 0);
}
#pragma GCC diagnostic pop

/* oldlaunch STREAM KERNEL ARGUMENT...: by functions that CUDA has deprecated; all arguments have 64
 * bits */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int c_oldlaunch(char **w) {
    enum { MOST = 8, THREADS = 128 };
    CUfunction function;
    u64 values[MOST];
    unsigned count = 0;
    for (; count < MOST && w[3 + count]; count++)
        values[count] = argument(w[3 + count]);
    int code = (int)CU(cuModuleGetFunction)(&function, kernels, w[2]);
    code = code ? code : (int)CU(cuFuncSetBlockShape)(function, THREADS, 1, 1);
    code = code ? code : (int)CU(cuParamSetSize)(function, count * sizeof(u64));
    code = code ? code : (int)CU(cuParamSetv)(function, 0, values, count * sizeof(u64));
    if (code)
        return code;
    if (strcmp(w[1], "one") == 0)
        return (int)CU(cuLaunch)(function);
    return strcmp(w[1], "-") == 0 ? (int)CU(cuLaunchGrid)(function, 32, 1)
                                  : (int)CU(cuLaunchGridAsync)(function, 32, 1, stream_of(w[1]));
}
#pragma GCC diagnostic pop

/* stream NAME [FLAGS]: one that the default stream does not wait for, if not said otherwise */
static int c_stream(char **w) {
    CUstream stream = NULL;
    size_t left, total;
    int code = do_info(&left, &total);
    if (!code)
        code = (int)CU(cuStreamCreate)(&stream,
                                       w[2] ? (unsigned)number(w[2]) : CU_STREAM_NON_BLOCKING);
    return pointer_reply(w[1], code, (uintptr_t)stream);
}
COMMAND(unstream, (int)CU(cuStreamDestroy)(stream_of(w[1])))
COMMAND(squery, (int)CU(cuStreamQuery)(stream_of(w[1])))
COMMAND(ssync, (int)CU(cuStreamSynchronize)(stream_of(w[1])))
COMMAND(sfill, (int)CU(cuMemsetD8Async)(value(w[2]) + number(w[5]), (unsigned char)number(w[3]),
                                        number(w[4]), stream_of(w[1])))

COMMAND(word, (int)CU(cuStreamWriteValue32)(stream_of(w[1]), value(w[2]) + number(w[3]),
                                            (cuuint32_t)number(w[4]), 0))

const struct command stream_commands[] = {
    {"kernels", "FILE", c_kernels},
    {"unload", "", c_unload},
    {"launch", "STREAM KERNEL ARGUMENT...", c_launch},
    {"spinboth", "STREAM STREAM NAME WORDS NS NS SUM", c_spinboth},
    {"oldlaunch", "STREAM KERNEL ARGUMENT...", c_oldlaunch},
    {"stream", "NAME [FLAGS]", c_stream},
    {"unstream", "NAME", c_unstream},
    {"squery", "STREAM", c_squery},
    {"ssync", "STREAM", c_ssync},
    {"sfill", "STREAM NAME BYTE COUNT [OFFSET]", c_sfill},
    {"word", "STREAM NAME OFFSET VALUE", c_word},
    {0},
};
