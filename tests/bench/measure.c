/* Clocks, checks, rows; see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

size_t size;

void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "calls: %s: %s\n", call, cudaGetErrorName(error));
    exit(1);
}

static double read_clock(clockid_t which) {
    struct timespec time;
    clock_gettime(which, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double cpu_time(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double median_of(double *values, size_t count) {
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

void print_figure(const char *name, double value) {
    printf("%s\t%.1f\n", name, value);
    fflush(stdout);
}

/* Where something comes before or after, each call is timed alone, which costs both sides the same.
 */
static double batch(const struct row *row) {
    double spent = 0;
    if (!row->before && !row->after) {
        const double start = now();
        for (int i = 0; i < row->repeats; i++)
            row->call();
        return (now() - start) / row->repeats;
    }
    for (int i = 0; i < row->repeats; i++) {
        if (row->before)
            row->before();
        const double start = now();
        row->call();
        spent += now() - start;
        if (row->after)
            row->after();
    }
    return spent / row->repeats;
}

void row_print(const struct row *row) {
    double batches[BATCHES];
    if (row->available && !row->available())
        return;
    size = row->size;
    row_repeat(row, 1);
    for (int i = 0; i < BATCHES; i++)
        batches[i] = batch(row);
    print_figure(row->name, median_of(batches, BATCHES));
}

void row_repeat(const struct row *row, long count) {
    size = row->size;
    for (long i = 0; i < count; i++) {
        if (row->before)
            row->before();
        row->call();
        if (row->after)
            row->after();
    }
}
