/* server.c - loads five layers from the host, fills a vocabulary on the GPU, and serves for as many
 * seconds as it is told. */
#include "../common/system_headers.h"
#include <cuda_runtime_api.h>

enum { LAYER = 4 << 20, LAYERS = 5 };

static char host[LAYER];

static int load(void **layer, int weight) {
    memset(host, weight, LAYER);
    return cudaMalloc(layer, LAYER) || cudaMemcpy(*layer, host, LAYER, cudaMemcpyHostToDevice);
}

static int serve(void *const *layers, int seconds) {
    for (int i = 0; i < 10 * seconds; i++) {
        if (cudaMemcpy(host, layers[i % LAYERS], 1, cudaMemcpyDeviceToHost) ||
            host[0] != i % LAYERS + 1)
            return 1;
        usleep(100000);
    }
    return 0;
}

int main(int argc, char **argv) {
    void *layers[LAYERS], *words;
    for (int i = 0; i < LAYERS; i++)
        if (load(&layers[i], i + 1))
            return 1;
    if (cudaMalloc(&words, LAYER) || cudaMemset(words, 7, LAYER))
        return 1;
    return serve(layers, argc > 1 ? atoi(argv[1]) : 10);
}
