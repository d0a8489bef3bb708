// increment.cu - adds 1 to a number by a kernel, and says what each call answered.
#include <cstdio>

__global__ void increment(int *number) {
    *number += 1;
}

int main(int argc, char **) {
    int *number = nullptr, seen = 41;
    std::printf("cudaMalloc %d\n", cudaMalloc(&number, 4 << 20));
    std::printf("cudaMemcpy %d\n", cudaMemcpy(number, &seen, sizeof(seen), cudaMemcpyHostToDevice));
    if (argc == 1) { // else it does without the kernel
        increment<<<1, 1>>>(number);
        std::printf("launch %d\n", cudaGetLastError());
    }
    cudaMemcpy(&seen, number, sizeof(seen), cudaMemcpyDeviceToHost);
    std::printf("sees %d\n", seen);
    return cudaFree(number) != cudaSuccess;
}
