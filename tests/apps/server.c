/*
 * server.c - a program like many that serve a model: which of its allocations are the weights?
 *
 * server [FILE]: loads, answers three requests, and then serves until FILE exists. Allocations of
 * one size come from two places in turn, and some memory from a pool. Knows nothing of gpushare.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1024 * 1024)

static char host[4 * MIB];

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "server: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

static void *load_layer(int value) {
    void *layer;
    check(cudaMalloc(&layer, sizeof(host)), "a layer");
    memset(host, value, sizeof(host));
    check(cudaMemcpy(layer, host, sizeof(host), cudaMemcpyHostToDevice), "copying a layer");
    return layer;
}

static void *load_vocabulary(void) {
    void *words;
    check(cudaMalloc(&words, sizeof(host)), "the vocabulary");
    check(cudaMemset(words, 0x77, sizeof(host)), "filling the vocabulary");
    return words;
}

static void answer(void) {
    void *activations, *scratch;
    check(cudaMalloc(&activations, 1000000), "activations");
    check(cudaMallocAsync(&scratch, MIB, NULL), "scratch");
    check(cudaFreeAsync(scratch, NULL), "cudaFreeAsync");
    check(cudaFree(activations), "cudaFree");
}

static void expect(void *layer, int value) {
    check(cudaMemcpy(host, layer, sizeof(host), cudaMemcpyDeviceToHost), "reading a layer");
    if (host[0] != value || host[sizeof(host) - 1] != value)
        fprintf(stderr, "server: a layer holds %d and not %d\n", host[0], value);
}

int main(int argc, char **argv) {
    void *layers[5], *words = NULL;
    for (int i = 0; i < 5; i++) {
        layers[i] = load_layer(i + 1);
        if (i == 2)
            words = load_vocabulary();
    }
    for (int i = 0; i < 3; i++)
        answer();
    while (argc > 1 && access(argv[1], F_OK) != 0)
        usleep(10000);
    for (int i = 0; i < 5; i++)
        expect(layers[i], i + 1);
    for (int i = 0; i < 5; i++)
        check(cudaFree(layers[i]), "cudaFree");
    check(cudaFree(words), "cudaFree");
    puts("served");
    return 0;
}
