/*
 * churn.c - allocates, fills, compares and frees memory at random, as engines do between two
 * models.
 *
 * churn THREADS TURNS MOST SEED: each thread has one allocation at a time, of 2 to MOST MiB, with
 * one of four contents, so that processes have equal bytes. It prints how often cudaMalloc answered
 * 2, and what else went wrong; the status is 0 if nothing else did.
 */
#include "../common/system_headers.h"
#include <cuda_runtime_api.h>

#define MIB ((size_t)1 << 20)

static _Atomic unsigned lacked, failed, differed;
static int turns, most;

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill(unsigned *words, size_t size, unsigned content) {
    for (size_t i = 0; i < size / sizeof(*words); i++)
        words[i] = (unsigned)i * 2654435761u + content;
}

static void turn(unsigned *words, unsigned *back, unsigned *state) {
    const size_t size = (2 + next(state) % (unsigned)(most - 1)) * MIB;
    const unsigned content = next(state) % 4;
    void *p;
    const cudaError_t code = cudaMalloc(&p, size);
    lacked += code == cudaErrorMemoryAllocation;
    failed += code != cudaErrorMemoryAllocation && code != cudaSuccess;
    if (code != cudaSuccess)
        return;
    fill(words, size, content);
    const size_t at = next(state) % 2 ? size - MIB : 0;
    const bool good = cudaMemcpy(p, words, size, cudaMemcpyHostToDevice) == cudaSuccess &&
                      cudaMemset(p, 0, 4) == cudaSuccess &&
                      cudaMemcpy(p, words, 4, cudaMemcpyHostToDevice) == cudaSuccess &&
                      cudaMemcpy(back, (char *)p + at, MIB, cudaMemcpyDeviceToHost) == cudaSuccess;
    differed += good && memcmp(back, (char *)words + at, MIB) != 0;
    failed += !good + (cudaFree(p) != cudaSuccess);
}

static void *run(void *seed) {
    unsigned *words = malloc((size_t)most * MIB), *back = malloc(MIB);
    unsigned state = *(unsigned *)seed;
    for (int i = 0; i < turns; i++)
        turn(words, back, &state);
    free(words);
    free(back);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[16];
    unsigned seeds[16];
    if (count != 5)
        return 2;
    const int wanted = atoi(arguments[1]), running = wanted < 16 ? wanted : 16;
    turns = atoi(arguments[2]);
    most = atoi(arguments[3]);
    cudaFree(NULL);
    for (int i = 0; i < running; i++) {
        seeds[i] = (unsigned)atoi(arguments[4]) * 16 + (unsigned)i;
        pthread_create(&threads[i], NULL, run, &seeds[i]);
    }
    for (int i = 0; i < running; i++)
        pthread_join(threads[i], NULL);
    printf("lacked %u, failed %u, differed %u\n", lacked, failed, differed);
    return failed || differed;
}
