/*
 * token.c - memory of cuMemCreate that is passed on by cudaIpcGetMemHandle, as vmm_ipc = on lets it
 * be. Without that no driver gives a handle, and the programs do without: they end.
 */
#include "misuse.h"

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static CUmemGenericAllocationHandle make(void) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    MUST(CU(cuMemCreate)(&handle, BLOCK, &wanted, 0));
    return handle;
}

/* A block more, as an allocator grows its segment. */
static void grow(CUdeviceptr at) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemGenericAllocationHandle handle = make();
    MUST(CU(cuMemMap)(at, BLOCK, 0, handle, 0));
    MUST(CU(cuMemSetAccess)(at, BLOCK, &access, 1));
    MUST(CU(cuMemRelease)(handle));
}

static CUdeviceptr segment(void) {
    CUdeviceptr place = 0;
    MUST(cudaFree(NULL));
    MUST(CU(cuMemAddressReserve)(&place, (size_t)2 * BLOCK, 0, 0, 0));
    grow(place);
    return place;
}

static void send_token(CUdeviceptr place) {
    cudaIpcMemHandle_t handle;
    const cudaError_t code = cudaIpcGetMemHandle(&handle, (void *)place);
    if (code != cudaSuccess)
        skip("there are no handles of such memory");
    send_bytes(&handle, sizeof(handle));
}

static void give_back(CUdeviceptr place, size_t size) {
    MUST(CU(cuMemUnmap)(place, size));
    MUST(CU(cuMemAddressFree)(place, (size_t)2 * BLOCK));
}

/* --- import-partial: the buffer goes on in a block that is mapped after the handle was taken ---
 */

static void partial_exporter(void) {
    const CUdeviceptr place = segment();
    if (right())
        grow(place + BLOCK);
    send_token(place);
    if (!right())
        grow(place + BLOCK);
    tell();
    wait_for_peer();
    give_back(place, (size_t)2 * BLOCK);
}

static void partial_importer(void) {
    static char bytes[8192];
    char *const q = open_received();
    wait_for_peer();
    CHECK(right() ? cudaSuccess : cudaErrorInvalidValue,
          cudaMemcpy(bytes, q + BLOCK - 4096, sizeof(bytes), cudaMemcpyDeviceToHost));
    MUST(cudaIpcCloseMemHandle(q));
    tell();
}

/* --- vmm-remapped-shared: what the other one has open is given back, and comes again --- */

static void remapped_exporter(void) {
    const CUdeviceptr place = segment();
    send_token(place);
    wait_for_peer(); /* it is open, or, as it should be, closed */
    CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, BLOCK));
    grow(place);
    tell();
    wait_for_peer();
    give_back(place, BLOCK);
}

static void remapped_importer(void) {
    void *const q = open_received();
    if (right())
        MUST(cudaIpcCloseMemHandle(q));
    tell();
    wait_for_peer();
    if (!right())
        MUST(cudaIpcCloseMemHandle(q));
    tell();
}

const struct scenario token_scenarios[] = {
    {"import-partial", partial_exporter, partial_importer, false},
    {"vmm-remapped-shared", remapped_exporter, remapped_importer, false},
    {0}};
