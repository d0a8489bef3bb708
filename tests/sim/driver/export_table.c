/* The tables by which NVIDIA's own runtime reaches what the driver does not document. There are
 * none here, so that runtime answers every call with an error; its user is told why, once. */

#include "abi.h"

static void tell(void) {
    static const char sentence[] =
        "simulated CUDA: kernels, and NVIDIA's runtime, which nvcc links in, need a card; without "
        "kernels a program runs here if nvcc gets -cudart shared\n";
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told) &&
        write(STDERR_FILENO, sentence, sizeof(sentence) - 1) < 0)
        return;
}

CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *id) {
    REFUSE(!table, CUDA_ERROR_INVALID_VALUE);
    tell();
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}
