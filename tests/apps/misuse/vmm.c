/*
 * vmm.c - memory of cuMemCreate: released, unmapped, mapped, exported and given back as it must not
 * be. One process each.
 */
#include "misuse.h"

enum { POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static CUresult create(CUmemGenericAllocationHandle *out, size_t size, unsigned types) {
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = (CUmemAllocationHandleType)types,
                                        .location = here};
    return CU(cuMemCreate)(out, size, &wanted, 0);
}

static CUmemGenericAllocationHandle make(unsigned types) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cudaFree(NULL));
    MUST(create(&handle, BLOCK, types));
    return handle;
}

static CUdeviceptr reserve(size_t size) {
    CUdeviceptr place = 0;
    MUST(CU(cuMemAddressReserve)(&place, size, 0, 0, 0));
    return place;
}

static void allow(CUdeviceptr place, size_t size) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    MUST(CU(cuMemSetAccess)(place, size, &access, 1));
}

static void map(CUdeviceptr place, size_t size, CUmemGenericAllocationHandle handle) {
    MUST(CU(cuMemMap)(place, size, 0, handle, 0));
    allow(place, size);
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle handle) {
    const CUdeviceptr place = reserve(BLOCK);
    map(place, BLOCK, handle);
    return place;
}

/* And gives its place back. */
static void unmap(CUdeviceptr place) {
    MUST(CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, BLOCK));
}

/* --- vmm-double-release: by the one who made it, and by one who thinks that retaining made it his
 */

static void double_release(void) {
    CUmemGenericAllocationHandle again = 0;
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    if (right())
        MUST(CU(cuMemRetainAllocationHandle)(&again, (void *)place));
    CHECK(CUDA_SUCCESS, CU(cuMemRelease)(handle));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, CU(cuMemRelease)(handle));
    unmap(place);
}

/* --- unmap-mismatch: the second half of a mapping --- */

static void unmap_mismatch(void) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cudaFree(NULL));
    MUST(create(&handle, (size_t)2 * BLOCK, 0));
    const CUdeviceptr place = reserve((size_t)2 * BLOCK);
    map(place, (size_t)2 * BLOCK, handle);
    MUST(CU(cuMemRelease)(handle));
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(place + BLOCK, BLOCK));
    CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, (size_t)2 * BLOCK));
    MUST(CU(cuMemAddressFree)(place, (size_t)2 * BLOCK));
}

/* --- unmap-mismatch-nothing: two parts of a program clean up --- */

static void unmap_nothing(void) {
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    MUST(CU(cuMemRelease)(handle));
    CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, BLOCK));
    if (!right())
        CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, BLOCK));
}

/* --- vmm-granularity: the bytes that are wanted, and not what holds them --- */

static void granularity(void) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cudaFree(NULL));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          create(&handle, right() ? BLOCK : 1000000, 0));
    if (right())
        MUST(CU(cuMemRelease)(handle));
}

/* --- mapping-without-access: who maps memory once more forgets that access is the mapping's --- */

static void without_access(void) {
    char byte = 0;
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = reserve((size_t)2 * BLOCK), second = place + BLOCK;
    map(place, BLOCK, handle);
    if (right())
        map(second, BLOCK, handle);
    else
        MUST(CU(cuMemMap)(second, BLOCK, 0, handle, 0));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemcpyDtoH_v2)(&byte, second, sizeof(byte)));
    MUST(CU(cuMemUnmap)(place, (size_t)2 * BLOCK));
    MUST(CU(cuMemAddressFree)(place, (size_t)2 * BLOCK));
    MUST(CU(cuMemRelease)(handle));
}

/* --- mapping-never-accessible: what is mapped, and used later, if the program comes to it --- */

static void never_accessible(void) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = reserve(BLOCK);
    CHECK(CUDA_SUCCESS, CU(cuMemMap)(place, BLOCK, 0, handle, 0));
    if (right())
        CHECK(CUDA_SUCCESS, CU(cuMemSetAccess)(place, BLOCK, &access, 1));
    MUST(CU(cuMemRelease)(handle));
}

/* --- access-peer-missing: enough for cudaMalloc, and not for this --- */

static void peer_access(void) {
    int devices = 0;
    CUmemAccessDesc both[] = {{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                              {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    MUST(cudaGetDeviceCount(&devices));
    if (devices < 2)
        skip("it takes two devices");
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    both[1].location.id = 1;
    if (right())
        MUST(CU(cuMemSetAccess)(place, BLOCK, both, 2));
    MUST(cudaSetDevice(1));
    MUST(cudaDeviceEnablePeerAccess(0, 0));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8_v2)(place, 0, BLOCK));
    unmap(place);
    MUST(CU(cuMemRelease)(handle));
}

/* --- export-type-missing --- */

static void export_type(void) {
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(right() ? POSIX : 0);
    CHECK(
        right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    if (right())
        close(descriptor);
    MUST(CU(cuMemRelease)(handle));
}

/* --- export-not-capable-vmm: the handle that cudaMalloc's memory has --- */

static void legacy_handle(void) {
    cudaIpcMemHandle_t legacy;
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    const CUdeviceptr place = mapped(handle);
    if (right())
        CHECK(CUDA_SUCCESS, CU(cuMemExportToShareableHandle)(&descriptor, handle,
                                                             (CUmemAllocationHandleType)POSIX, 0));
    else
        CHECK(cudaErrorInvalidValue, cudaIpcGetMemHandle(&legacy, (void *)place));
    close(descriptor);
    unmap(place);
    MUST(CU(cuMemRelease)(handle));
}

/* --- fabric-unusable: the device says that it can; right is who tries something else --- */

static void fabric(void) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cudaFree(NULL));
    const CUresult result = create(&handle, BLOCK, CU_MEM_HANDLE_TYPE_FABRIC);
    if (result == CUDA_SUCCESS)
        skip("fabric handles can be had");
    CHECK(CUDA_ERROR_NOT_PERMITTED, result);
    if (right()) {
        MUST(create(&handle, BLOCK, POSIX));
        MUST(CU(cuMemRelease)(handle));
    }
}

/* --- address-free-mapped --- */

static void address_free(void) {
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    MUST(CU(cuMemRelease)(handle));
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(place, BLOCK));
    MUST(CU(cuMemUnmap)(place, BLOCK));
    CHECK(CUDA_SUCCESS, CU(cuMemAddressFree)(place, BLOCK));
}

/* --- map-over-mapping: a new block for a place that has one --- */

static void map_over(void) {
    const CUmemGenericAllocationHandle first = make(0), second = make(0);
    const CUdeviceptr place = reserve(BLOCK);
    map(place, BLOCK, first);
    if (right())
        MUST(CU(cuMemUnmap)(place, BLOCK));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemMap)(place, BLOCK, 0, second, 0));
    if (right())
        allow(place, BLOCK);
    unmap(place);
    MUST(CU(cuMemRelease)(first));
    MUST(CU(cuMemRelease)(second));
}

/* --- vmm-use-after-release: the handle is kept, and not what it stands for --- */

static void use_after_release(void) {
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = reserve(BLOCK);
    if (!right())
        MUST(CU(cuMemRelease)(handle));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemMap)(place, BLOCK, 0, handle, 0));
    if (right()) {
        MUST(CU(cuMemRelease)(handle));
        allow(place, BLOCK);
        MUST(CU(cuMemUnmap)(place, BLOCK));
    }
    MUST(CU(cuMemAddressFree)(place, BLOCK));
}

static void export_after_release(void) {
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    if (!right())
        MUST(CU(cuMemRelease)(handle));
    CHECK(
        right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    if (right()) {
        close(descriptor);
        MUST(CU(cuMemRelease)(handle));
    }
}

/* --- use-unmapped: after the unmap, before the map, and over a hole --- */

static void use_unmapped(void) {
    char byte = 0;
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    MUST(CU(cuMemRelease)(handle));
    if (right())
        CHECK(CUDA_SUCCESS, CU(cuMemcpyDtoH_v2)(&byte, place, sizeof(byte)));
    MUST(CU(cuMemUnmap)(place, BLOCK));
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(&byte, place, sizeof(byte)));
    MUST(CU(cuMemAddressFree)(place, BLOCK));
}

static void fill_unmapped(void) {
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = reserve((size_t)2 * BLOCK);
    map(place, BLOCK, handle);
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemsetD8_v2)(place, 0, right() ? BLOCK : (size_t)2 * BLOCK));
    MUST(CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, (size_t)2 * BLOCK));
    MUST(CU(cuMemRelease)(handle));
}

static void allow_unmapped(void) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = reserve((size_t)2 * BLOCK);
    map(place, BLOCK, handle);
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemSetAccess)(place, right() ? BLOCK : (size_t)2 * BLOCK, &access, 1));
    MUST(CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, (size_t)2 * BLOCK));
    MUST(CU(cuMemRelease)(handle));
}

/* --- memory-call-failed: addresses that nobody has reserved; null-output-vmm --- */

static void call_failed(void) {
    const CUdeviceptr place = (MUST(cudaFree(NULL)), reserve(BLOCK));
    CHECK(CUDA_SUCCESS, CU(cuMemAddressFree)(place, BLOCK));
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(place, BLOCK));
}

static void null_output(void) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cudaFree(NULL));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          create(right() ? &handle : NULL, BLOCK, 0));
    if (right())
        MUST(CU(cuMemRelease)(handle));
}

/* --- vmm-handle-leak: what was unmapped is not given back --- */

static void handle_leak(void) {
    const CUmemGenericAllocationHandle handle = make(0);
    const CUdeviceptr place = mapped(handle);
    CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, BLOCK));
    if (right())
        MUST(CU(cuMemRelease)(handle));
}

/* --- descriptor-refused: the number is sent, as if it were a handle --- */

enum { HIGH = 200 }; /* a number that the other process does not have */

static void send_number(void) {
    int made = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    MUST(CU(cuMemExportToShareableHandle)(&made, handle, (CUmemAllocationHandleType)POSIX, 0));
    const int descriptor = fcntl(made, F_DUPFD_CLOEXEC, HIGH);
    close(made);
    if (right())
        send_descriptor(descriptor);
    else
        send_bytes(&descriptor, sizeof(descriptor));
    wait_for_peer();
    close(descriptor);
    MUST(CU(cuMemRelease)(handle));
}

static void import_number(void) {
    CUmemGenericAllocationHandle handle = 0;
    int descriptor = -1;
    if (right())
        descriptor = take_descriptor();
    else
        take_bytes(&descriptor, sizeof(descriptor));
    MUST(cudaFree(NULL));
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN,
          CU(cuMemImportFromShareableHandle)(&handle, (void *)(size_t)descriptor,
                                             (CUmemAllocationHandleType)POSIX));
    if (right()) {
        close(descriptor);
        MUST(CU(cuMemRelease)(handle));
    }
    tell();
}

/* --- descriptor-refused-address, -negative, null-output-import: what is passed for it --- */

static void import_as(void *shared, CUmemGenericAllocationHandle *handle, int descriptor) {
    if (right()) {
        shared = (void *)(intptr_t)descriptor;
        CHECK(CUDA_SUCCESS,
              CU(cuMemImportFromShareableHandle)(handle, shared, (CUmemAllocationHandleType)POSIX));
        MUST(CU(cuMemRelease)(*handle));
    } else {
        const CUresult result =
            CU(cuMemImportFromShareableHandle)(handle, shared, (CUmemAllocationHandleType)POSIX);
        note(result != CUDA_SUCCESS, "the import is refused");
    }
}

static void import_wrongly(void *(*wrong)(int *descriptor), bool output) {
    CUmemGenericAllocationHandle imported = 0;
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    MUST(
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    import_as(wrong(&descriptor), output || right() ? &imported : NULL, descriptor);
    close(descriptor);
    MUST(CU(cuMemRelease)(handle));
}

static void *address_of(int *descriptor) {
    return descriptor;
}

static void import_address(void) {
    import_wrongly(address_of, true);
}

static void *negative(int *descriptor) {
    return (void *)(intptr_t)-1;
}

static void import_negative(void) {
    import_wrongly(negative, true);
}

static void *itself(int *descriptor) {
    return (void *)(intptr_t)*descriptor;
}

static void import_to_nowhere(void) {
    import_wrongly(itself, false);
}

/* --- descriptor-refused-external: an import as external memory closes the descriptor --- */

static void import_external(int descriptor, CUresult expected) {
    CUexternalMemory external = NULL;
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted = {.type =
                                                         CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                     .handle = {.fd = descriptor},
                                                     .size = BLOCK};
    CHECK(expected, CU(cuImportExternalMemory)(&external, &wanted));
    if (expected == CUDA_SUCCESS)
        MUST(CU(cuDestroyExternalMemory)(external));
}

static void import_external_twice(void) {
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    MUST(
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    const int other = right() ? dup(descriptor) : descriptor;
    import_external(descriptor, CUDA_SUCCESS);
    import_external(other, right() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    MUST(CU(cuMemRelease)(handle));
}

/* --- descriptor-refused-gpu: each process has a GPU of its own --- */

static void export_here(void) {
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    MUST(
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    send_descriptor(descriptor);
    close(descriptor);
    wait_for_peer();
    MUST(CU(cuMemRelease)(handle));
}

static void import_elsewhere(void) {
    CUmemGenericAllocationHandle handle = 0;
    const int descriptor = take_descriptor();
    if (!right())
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    if (cudaFree(NULL) != cudaSuccess)
        skip("it takes two devices");
    const CUresult result = CU(cuMemImportFromShareableHandle)(&handle, (void *)(size_t)descriptor,
                                                               (CUmemAllocationHandleType)POSIX);
    if (!right() && result == CUDA_SUCCESS)
        skip("the driver imports memory of a card that it does not show");
    check_code((int)result, right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE,
               "CU(cuMemImportFromShareableHandle)");
    close(descriptor);
    if (right())
        MUST(CU(cuMemRelease)(handle));
    tell();
}

/* --- export-descriptor-leak: it was sent, and nobody thinks of it any more --- */

static void export_descriptor(void) {
    int descriptor = -1;
    const CUmemGenericAllocationHandle handle = make(POSIX);
    MUST(
        CU(cuMemExportToShareableHandle)(&descriptor, handle, (CUmemAllocationHandleType)POSIX, 0));
    send_descriptor(descriptor);
    wait_for_peer();
    if (right())
        close(descriptor);
    CHECK(CUDA_SUCCESS, CU(cuMemRelease)(handle));
}

static void import_once(bool closes) {
    CUmemGenericAllocationHandle handle = 0;
    const int descriptor = take_descriptor();
    MUST(cudaFree(NULL));
    MUST(CU(cuMemImportFromShareableHandle)(&handle, (void *)(size_t)descriptor,
                                            (CUmemAllocationHandleType)POSIX));
    if (closes)
        close(descriptor);
    const CUdeviceptr place = mapped(handle);
    CHECK(CUDA_SUCCESS, CU(cuMemUnmap)(place, BLOCK));
    MUST(CU(cuMemAddressFree)(place, BLOCK));
    MUST(CU(cuMemRelease)(handle));
    tell();
}

static void import_and_close(void) {
    import_once(true);
}

/* --- export-imported: passed on by the one who got it --- */

static void export_imported(void) {
    CUmemGenericAllocationHandle handle = 0;
    const int descriptor = take_descriptor();
    int mine = -1;
    MUST(cudaFree(NULL));
    MUST(CU(cuMemImportFromShareableHandle)(&handle, (void *)(size_t)descriptor,
                                            (CUmemAllocationHandleType)POSIX));
    close(descriptor);
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE,
              CU(cuMemExportToShareableHandle)(&mine, handle, (CUmemAllocationHandleType)POSIX, 0));
    MUST(CU(cuMemRelease)(handle));
    tell();
}

/* --- import-descriptor-leak: an import looks as if it took the descriptor over --- */

static void import_descriptor(void) {
    import_once(right());
}

const struct scenario vmm_scenarios[] = {
    {"vmm-double-release", double_release, NULL, false},
    {"unmap-mismatch", unmap_mismatch, NULL, false},
    {"unmap-mismatch-nothing", unmap_nothing, NULL, false},
    {"vmm-granularity", granularity, NULL, false},
    {"mapping-without-access", without_access, NULL, false},
    {"mapping-never-accessible", never_accessible, NULL, false},
    {"access-peer-missing", peer_access, NULL, false},
    {"export-type-missing", export_type, NULL, false},
    {"export-not-capable-vmm", legacy_handle, NULL, false},
    {"fabric-unusable", fabric, NULL, false},
    {"address-free-mapped", address_free, NULL, false},
    {"map-over-mapping", map_over, NULL, false},
    {"vmm-use-after-release", use_after_release, NULL, false},
    {"vmm-use-after-release-export", export_after_release, NULL, false},
    {"use-unmapped", use_unmapped, NULL, false},
    {"use-unmapped-fill", fill_unmapped, NULL, false},
    {"use-unmapped-access", allow_unmapped, NULL, false},
    {"export-imported", export_here, export_imported, false},
    {"memory-call-failed", call_failed, NULL, false},
    {"null-output-vmm", null_output, NULL, false},
    {"vmm-handle-leak", handle_leak, NULL, false},
    {"descriptor-refused", send_number, import_number, false},
    {"descriptor-refused-address", import_address, NULL, false},
    {"descriptor-refused-negative", import_negative, NULL, false},
    {"descriptor-refused-external", import_external_twice, NULL, false},
    {"null-output-import", import_to_nowhere, NULL, false},
    {"descriptor-refused-gpu", export_here, import_elsewhere, false},
    {"export-descriptor-leak", export_descriptor, import_and_close, false},
    {"import-descriptor-leak", export_here, import_descriptor, false},
    {0}};
