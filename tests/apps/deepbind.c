/*
 * deepbind.c - a library that is linked with the driver. A program loads it with RTLD_DEEPBIND, and
 * it is bound lazily.
 */
#include "../common/system_headers.h"
#include <cuda.h>

int fill(CUdeviceptr at);
int scribble(CUdeviceptr at);
int scribbled(CUdeviceptr at);
int properties(CUdeviceptr handle);

int fill(CUdeviceptr at) {
    return (int)cuMemsetD8(at, 0x55, 64);
}

int properties(CUdeviceptr handle) {
    CUmemAllocationProp what;
    return (int)cuMemGetAllocationPropertiesFromHandle(&what, handle);
}

/* A thread writes word after word of 16 MiB, until it is told to stop. */
enum { WORDS = 1 << 21 };
static struct {
    CUdeviceptr at;
    CUcontext context;
    pthread_t thread;
    _Atomic int stop;
    uint32_t count;      /* of words that were tried */
    uint8_t done[WORDS]; /* those of them that the driver took */
} scribbler;

static void *scribble_all(void *unused) {
    cuCtxSetCurrent(scribbler.context);
    for (uint64_t i = 0; i < WORDS && !scribbler.stop; i++) {
        const uint64_t word = i + 1;
        scribbler.done[i] = cuMemcpyHtoD(scribbler.at + i * sizeof(word), &word, sizeof(word)) == 0;
        scribbler.count = (uint32_t)i + 1;
        usleep(50);
    }
    return unused;
}

int scribble(CUdeviceptr at) {
    scribbler.at = at;
    cuCtxGetCurrent(&scribbler.context);
    return pthread_create(&scribbler.thread, NULL, scribble_all, NULL);
}

/* How many of the words that the driver took are not there; -1: it took none. */
int scribbled(CUdeviceptr at) {
    static uint64_t words[WORDS];
    int wrong = 0, taken = 0;
    scribbler.stop = 1;
    pthread_join(scribbler.thread, NULL);
    if (cuMemcpyDtoH(words, at, scribbler.count * sizeof(words[0])) != 0)
        return -2;
    for (uint64_t i = 0; i < scribbler.count; i++) {
        wrong += scribbler.done[i] && words[i] != i + 1;
        taken += scribbler.done[i];
    }
    return taken ? wrong : -1;
}
