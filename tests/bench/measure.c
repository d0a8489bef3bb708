/* Checks, rows; see measure.h. */
#include "measure.h"

size_t size;

void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "calls: %s: %s\n", call, cudaGetErrorName(error));
    exit(1);
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
