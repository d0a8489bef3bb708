// Takes pieces of 64 MiB until the driver refuses one, 16 at most; says how many, the answer to the
// next, and what a piece holds that a kernel has filled.
#include "kernels.hpp"

int main() {
    const size_t size = 64 << 20, words = size / sizeof(uint32_t);
    uint32_t *pieces[16];
    int taken = 0, code = 0;
    while (taken < 16 && (code = cudaMalloc((void **)&pieces[taken], size)) == 0)
        taken++;
    (void)cudaGetLastError();
    if (taken)
        fill(pieces[0], words, 7);
    printf("taken %d, then %d, right %d\n", taken, code,
           taken && count_words(pieces[0], words, 7, 0) == words);
    while (taken)
        check(cudaFree(pieces[--taken]), "cudaFree");
    return 0;
}
