// A program of textures: of linear memory and of an array, read by one kernel, beside pinned and
// mapped host memory. For each line of its input it prints a sum over all of them.
#include <cstdio>
#include <cuda_runtime.h>

static const int WIDTH = 2048, HEIGHT = 2048, LINEAR = 16 << 20;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        const cudaError_t code = call;                                                             \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(code));                            \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void add(cudaTextureObject_t linear, cudaTextureObject_t plane, const float *pinned,
                    double *sum) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    double mine = 0;
    for (int i = at; i < LINEAR; i += stride)
        mine += tex1Dfetch<float>(linear, i);
    for (int i = at; i < WIDTH * HEIGHT; i += stride)
        mine += tex2D<float>(plane, i % WIDTH + 0.5f, i / WIDTH + 0.5f);
    for (int i = at; i < 1 << 16; i += stride)
        mine += pinned[i];
    atomicAdd(sum, mine);
}

int main() {
    float *memory, *host, *pinned;
    double *sum, result = 0;
    cudaArray_t array;
    MUST(cudaMalloc(&memory, LINEAR * sizeof *memory));
    MUST(cudaMalloc(&sum, sizeof *sum));
    MUST(cudaMallocHost(&host, LINEAR * sizeof *host));
    MUST(cudaHostAlloc(&pinned, (1 << 16) * sizeof *pinned, cudaHostAllocMapped));
    for (int i = 0; i < LINEAR; i++)
        host[i] = (float)(i % 1009);
    for (int i = 0; i < 1 << 16; i++)
        pinned[i] = (float)(i % 13);
    MUST(cudaMemcpy(memory, host, LINEAR * sizeof *memory, cudaMemcpyHostToDevice));
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    MUST(cudaMallocArray(&array, &format, WIDTH, HEIGHT));
    MUST(cudaMemcpy2DToArray(array, 0, 0, host, WIDTH * sizeof(float), WIDTH * sizeof(float),
                             HEIGHT, cudaMemcpyHostToDevice));
    cudaResourceDesc of_memory = {}, of_array = {};
    cudaTextureDesc how = {};
    cudaTextureObject_t linear, plane;
    of_memory.resType = cudaResourceTypeLinear;
    of_memory.res.linear.devPtr = memory;
    of_memory.res.linear.desc = format;
    of_memory.res.linear.sizeInBytes = LINEAR * sizeof *memory;
    of_array.resType = cudaResourceTypeArray;
    of_array.res.array.array = array;
    how.readMode = cudaReadModeElementType;
    MUST(cudaCreateTextureObject(&linear, &of_memory, &how, nullptr));
    MUST(cudaCreateTextureObject(&plane, &of_array, &how, nullptr));
    printf("ready\n");
    fflush(stdout);
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        MUST(cudaMemset(sum, 0, sizeof *sum));
        add<<<256, 256>>>(linear, plane, pinned, sum);
        MUST(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
        printf("%.0f\n", result);
        fflush(stdout);
    }
    return 0;
}
