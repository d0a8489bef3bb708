/*
 * What calls cost while many allocations live. A line for each number of them: how many, median of
 * malloc + free beside them, of getting the handle of one of them again, the slowest cudaMalloc on
 * the way there (time of the processor, so that being preempted does not count), bytes of resident
 * memory since the beginning.
 */
#include "measure.h"

enum { SIZE = 1024, SAMPLES = 501 };

static double malloc_and_free(void) {
    double samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        void *pointer;
        const double start = now();
        check(cudaMalloc(&pointer, SIZE), "cudaMalloc");
        check(cudaFree(pointer), "cudaFree");
        samples[i] = now() - start;
    }
    return median_of(samples, SAMPLES);
}

/* Of one that was exported before: the others stay as they are. */
static double get_handle(void *pointer) {
    double samples[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        cudaIpcMemHandle_t handle;
        const double start = now();
        check(cudaIpcGetMemHandle(&handle, pointer), "cudaIpcGetMemHandle");
        samples[i] = now() - start;
    }
    return median_of(samples, SAMPLES);
}

int live_main(long most, double seconds) {
    void **all = calloc((size_t)most + 1, sizeof(*all));
    double slowest = 0;
    long count = 0;
    if (!all)
        return 1;
    for (long i = 0; i < most; i++)
        all[i] = all; /* touched now, so that it is not counted later */
    check(cudaMalloc(&all[count++], SIZE), "cudaMalloc");
    get_handle(all[0]);
    malloc_and_free();
    const double begin = now(), before = resident();
    for (long goal = 1; goal <= most; goal *= 10) {
        while (count < goal && now() - begin < seconds * 1e9) {
            const double start = cpu_time();
            check(cudaMalloc(&all[count++], SIZE), "cudaMalloc");
            const double took = cpu_time() - start;
            slowest = took > slowest ? took : slowest;
        }
        const double grown = resident() - before;
        printf("%ld\t%.1f\t%.1f\t%.1f\t%.0f\n", count, malloc_and_free(), get_handle(all[0]),
               slowest, grown);
        fflush(stdout);
        if (count < goal)
            break;
    }
    for (long i = 0; i < count && now() - begin < 2 * seconds * 1e9; i++)
        check(cudaFree(all[i]), "cudaFree");
    free(all);
    return 0;
}
