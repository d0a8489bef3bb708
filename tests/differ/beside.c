/*
 * beside.c - a second thread of a replica's, with memory of its own: it uploads, has a kernel read,
 * reads back and frees while the steps go on. Its answers follow from what it wrote.
 */

#include "program.h"

enum { MOST = 9 * MIB };

static struct {
    pthread_t thread;
    atomic_bool over;
    bool runs;
    struct numbers numbers;
} beside;

static CUresult ask_kernel(struct replica *replica, CUdeviceptr from, size_t size, CUdeviceptr sum,
                           uint32_t *answer) {
    uint64_t words = size / sizeof(*answer);
    void *arguments[] = {&from, &words, &sum};
    CUresult code = cuMemsetD8(sum, 0, sizeof(*answer));
    if (!code)
        code = device_launch(replica, replica->read, 0, arguments);
    return code ? code : cuMemcpyDtoH(answer, sum, sizeof(*answer));
}

static CUresult one_round(struct replica *replica, CUdeviceptr at, size_t size, CUdeviceptr sum) {
    static unsigned char bytes[MOST], got[MOST];
    uint32_t expected = 0, answer = 0, word;
    const size_t half = number_below(&beside.numbers, size);
    numbers_fill(bytes, size, 1 + number_below(&beside.numbers, 3));
    for (size_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        expected += word;
    }
    CUresult code = cuMemcpyHtoD(at, bytes, half);
    if (!code)
        code = cuMemcpyHtoD(at + half, bytes + half, size - half);
    if (!code)
        code = ask_kernel(replica, at, size, sum, &answer);
    if (!code)
        code = cuMemcpyDtoH(got, at, size);
    if (!code && (answer != expected || memcmp(bytes, got, size) != 0))
        program_fail("the thread beside read other bytes than it wrote");
    return code;
}

static void *run(void *argument) {
    struct replica *const replica = argument;
    CUdeviceptr sum = 0, at;
    CUresult code = cuCtxSetCurrent(replica->context);
    if (!code)
        code = cuMemAlloc(&sum, 4096);
    while (!atomic_load(&beside.over) && !code) {
        const size_t size = MIB + number_below(&beside.numbers, MOST - MIB);
        code = cuMemAlloc(&at, size);
        if (code)
            break;
        code = one_round(replica, at, size, sum);
        const CUresult freed = cuMemFree(at);
        code = code ? code : freed;
    }
    /* A step may have lost the context, and memory may lack. */
    if (code && code != CUDA_ERROR_OUT_OF_MEMORY && cuCtxSynchronize() == CUDA_SUCCESS) {
        char text[64];
        snprintf(text, sizeof(text), "a call of the thread beside failed with %d", (int)code);
        program_fail(text);
    }
    return NULL;
}

void beside_begin(struct replica *replica) {
    beside.numbers = numbers_from(replica->seed, 0, 0);
    atomic_store(&beside.over, false);
    beside.runs = replica->soaks && pthread_create(&beside.thread, NULL, run, replica) == 0;
}

void beside_end(void) {
    atomic_store(&beside.over, true);
    if (beside.runs)
        pthread_join(beside.thread, NULL);
    beside.runs = false;
}
