/*
 * Rows 67 to 70: memory of cuMemCreate as external memory, by its descriptor. Each row in a process
 * of its own.
 */
#include "check.h"
#include "place.h"
#include "step.h"

enum { SIZE = 32 * MIB, PART = 2 * MIB, POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

static CUDA_EXTERNAL_MEMORY_HANDLE_DESC wanted;
static CUmemGenericAllocationHandle block;
static CUdeviceptr place;

static int descriptor_of(void) {
    int descriptor = -1;
    gpu.cuMemExportToShareableHandle(&descriptor, block, (CUmemAllocationHandleType)POSIX, 0);
    return descriptor;
}

static int fill_with(CUdeviceptr at, size_t size, int value) {
    const int code = (int)gpu.cuMemsetD8_v2(at, (unsigned char)value, size);
    return code ? code : (int)gpu.cuCtxSynchronize();
}

static int64_t first_byte(CUdeviceptr at) {
    unsigned char byte = 0;
    const int code = (int)gpu.cuMemcpyDtoH_v2(&byte, at, 1);
    return code ? -code : byte;
}

static void set_up(void) {
    check("start", 0, (int)place_start());
    place = place_reserve(SIZE);
    block = place_block(place, SIZE);
    check("  fill", 0, fill_with(place, SIZE, 7));
    wanted = (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                .size = SIZE};
}

static int import_code(int descriptor, CUexternalMemory *external) {
    wanted.handle.fd = descriptor;
    return (int)gpu.cuImportExternalMemory(external, &wanted);
}

static int buffer_code(CUexternalMemory external, uint64_t offset, uint64_t size,
                       CUdeviceptr *buffer) {
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC what = {.offset = offset, .size = size};
    return (int)gpu.cuExternalMemoryGetMappedBuffer(buffer, external, &what);
}

static int is_open(int descriptor) {
    struct pollfd look = {.fd = descriptor};
    return poll(&look, 1, 0) >= 0 && !(look.revents & POLLNVAL);
}

static int64_t told(CUpointer_attribute which, CUdeviceptr at) {
    uint64_t value = 0;
    const int code = (int)gpu.cuPointerGetAttribute(&value, which, at);
    return code ? -code : (int64_t)value;
}

/* --- 67: a life --- */

static void check_attributes(CUdeviceptr p) {
    CUcontext context = NULL;
    CUdeviceptr base = 0;
    CUipcMemHandle legacy;
    CUmemGenericAllocationHandle found;
    size_t size = 0;
    gpu.cuCtxGetCurrent(&context);
    check("  type", CU_MEMORYTYPE_DEVICE, told(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    check("  context: the current one", 1,
          told(CU_POINTER_ATTRIBUTE_CONTEXT, p) == (int64_t)(intptr_t)context);
    check("  capable", 0, told(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    check("  handle types", 0, told(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p));
    check("  its range", 0, (int)gpu.cuMemGetAddressRange_v2(&base, &size, p + 4096));
    check("    base, size", 1, base == p && size == SIZE);
    check("  legacy handle", 1, (int)gpu.cuIpcGetMemHandle(&legacy, p));
    check("  a handle of what is there", 1,
          (int)gpu.cuMemRetainAllocationHandle(&found, (void *)(uintptr_t)p));
}

static void check_frees(CUdeviceptr p, CUdeviceptr q) {
    check("free inside", 1, (int)gpu.cuMemFree_v2(p + 4096));
    check("free", 0, (int)gpu.cuMemFree_v2(p));
    check("  reading there", -1, first_byte(p));
    check("  the other one reads", 9, first_byte(q));
    check("  free again", 1, (int)gpu.cuMemFree_v2(p));
    check("unmap and release the original", 0,
          (int)(gpu.cuMemUnmap(place, SIZE) + gpu.cuMemRelease(block)));
    check("  the other one reads", 9, first_byte(q));
    check("  free", 0, (int)gpu.cuMemFree_v2(q));
}

/* CUDA documents that its buffers must not be used any more. */
static void check_destroyed_first(void) {
    CUexternalMemory external = NULL;
    CUdeviceptr p = 0;
    check("another import", 0, import_code(descriptor_of(), &external));
    check("  a buffer", 0, buffer_code(external, 0, SIZE, &p));
    check("  destroy", 0, (int)gpu.cuDestroyExternalMemory(external));
    check("  the buffer reads", 9, first_byte(p));
    check("  fill", 0, fill_with(p, 16, 9));
    check("  free", 0, (int)gpu.cuMemFree_v2(p));
    check("  again", 1, (int)gpu.cuMemFree_v2(p));
}

static uint64_t left(void) {
    size_t size = 0, total;
    return gpu.cuMemGetInfo_v2(&size, &total) ? 0 : size;
}

static void row_67(void) {
    CUexternalMemory external = NULL;
    CUdeviceptr p = 0, q = 0;
    set_up();
    const uint64_t before = left();
    const int descriptor = descriptor_of();
    check("import", 0, import_code(descriptor, &external));
    check("  the descriptor is closed", 0, is_open(descriptor));
    check("a buffer", 0, buffer_code(external, 0, SIZE, &p));
    check("  reads", 7, first_byte(p));
    check("a second one", 0, buffer_code(external, 0, SIZE, &q));
    check("  is elsewhere", 1, p != q && p != place);
    check_attributes(p);
    check("fill it", 0, fill_with(p, SIZE, 9));
    check("  the original reads", 9, first_byte(place));
    check("  past its end", 1, fill_with(p, SIZE + 1, 9));
    check_destroyed_first();
    check_frees(p, q);
    check("  charged until it is destroyed", 1, left() < before + PART);
    check("destroy", 0, (int)gpu.cuDestroyExternalMemory(external));
    check("  now it is free", 1, left() >= before + SIZE);
}

/* --- 68: descriptors --- */

static void check_foreign(void) {
    CUexternalMemory external = NULL;
    int ends[2] = {-1, -1};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (pipe(ends))
        return;
    check("none: -1", 999, import_code(-1, &external));
    check("  no number of an open one", 999, import_code(9999, &external));
    check("one of /dev/null", 999, import_code(null, &external));
    check("  it is closed all the same", 0, is_open(null));
    check("a pipe's", 999, import_code(ends[0], &external));
    check("  it is closed", 0, is_open(ends[0]));
    close(ends[1]);
}

static void check_twice(void) {
    CUexternalMemory one = NULL, two = NULL;
    CUmemGenericAllocationHandle other = 0;
    const int first = descriptor_of(), second = dup(first);
    check("import", 0, import_code(first, &one));
    check("  again by that number", 999, import_code(first, &two));
    check("  as a handle, by a duplicate", 0,
          (int)gpu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)second,
                                                  (CUmemAllocationHandleType)POSIX));
    check("  which stays open", 1, is_open(second));
    check("  as external memory by it", 0, import_code(second, &two));
    check("  which is closed", 0, is_open(second));
    check("destroy both", 0,
          (int)(gpu.cuDestroyExternalMemory(one) + gpu.cuDestroyExternalMemory(two)));
    check("  release", 0, (int)gpu.cuMemRelease(other));
}

/* What is refused before the driver looks at the descriptor leaves it. */
static int refused(CUexternalMemoryHandleType type, uint64_t size, unsigned flags) {
    CUexternalMemory external = NULL;
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC before = wanted;
    const int descriptor = descriptor_of();
    wanted.type = type;
    wanted.size = size;
    wanted.flags = flags;
    const int code = import_code(descriptor, &external);
    wanted = before;
    return close(descriptor) ? -1 : code;
}

static void check_refused(void) {
    const CUexternalMemoryHandleType opaque = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    static const int codes[] = {1, 0, 801, 801, 801, 1, 1, 1, 801, 801, 1};
    CUcontext context = NULL;
    for (int type = 0; type < (int)(sizeof codes / sizeof *codes); type++)
        if (type != (int)opaque)
            check("a descriptor of another type", codes[type],
                  refused((CUexternalMemoryHandleType)type, SIZE, 0));
    check("  without a size", 1, refused(opaque, 0, 0));
    check("  unknown flags", 1, refused(opaque, SIZE, 2));
    check("  no description", 1, (int)gpu.cuImportExternalMemory(&(CUexternalMemory){NULL}, NULL));
    gpu.cuCtxGetCurrent(&context);
    gpu.cuCtxSetCurrent(NULL);
    check("  without a context", 201, refused(opaque, SIZE, 0));
    gpu.cuCtxSetCurrent(context);
}

static void row_68(void) {
    set_up();
    check_foreign();
    check_twice();
    check_refused();
}

/* --- 69: sizes --- */

static void check_size(const char *what, uint64_t size, unsigned flags, int whole, int said) {
    CUexternalMemory external = NULL;
    CUdeviceptr p = 0;
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC before = wanted;
    wanted.size = size;
    wanted.flags = flags;
    check(what, 0, import_code(descriptor_of(), &external));
    wanted = before;
    check("  a buffer of the block", whole, buffer_code(external, 0, SIZE, &p));
    check("  a buffer of that size", said, buffer_code(external, 0, size, &p));
    check("  destroy", 0, (int)gpu.cuDestroyExternalMemory(external));
}

static void check_parts(CUexternalMemory external) {
    CUdeviceptr p = 0;
    check("a part", 0, buffer_code(external, PART, PART, &p));
    check("  reads", 7, first_byte(p));
    check("  free", 0, (int)gpu.cuMemFree_v2(p));
    check("a part of no whole blocks", 0, buffer_code(external, 4096, 8192, &p));
    check("  begins there in a page", 4096, (int64_t)(p % PART));
    check("  free", 0, (int)gpu.cuMemFree_v2(p));
    check("of 100 bytes", 0, buffer_code(external, 100, 100, &p));
    check("of none", 1, buffer_code(external, 0, 0, &p));
    check("behind the end", 1, buffer_code(external, SIZE, 4096, &p));
    check("beyond the end", 1, buffer_code(external, 0, SIZE + 1, &p));
    check("beyond all", 2, buffer_code(external, 4096, UINT64_MAX - 4095, &p));
    check("of no external memory", 1, buffer_code(NULL, 0, SIZE, &p));
}

static void row_69(void) {
    CUexternalMemory external = NULL;
    CUdeviceptr p = 0;
    set_up();
    check_size("one byte", 1, 0, 1, 0);
    check_size("half of it", SIZE / 2, CUDA_EXTERNAL_MEMORY_DEDICATED, 1, 0);
    check_size("a byte more", SIZE + 1, 0, 0, 1);
    check_size("twice as much", 2 * SIZE, CUDA_EXTERNAL_MEMORY_DEDICATED, 0, 1);
    check_size("more than there are addresses", 1ULL << 63, 0, 0, 2);
    check("all of it", 0, import_code(descriptor_of(), &external));
    check_parts(external);
    wanted.flags = CUDA_EXTERNAL_MEMORY_DEDICATED;
    check("dedicated", 0, import_code(descriptor_of(), &external));
    check("  a part", 1, buffer_code(external, PART, PART, &p));
    check("destroy none", 1, (int)gpu.cuDestroyExternalMemory(NULL));
}

/* --- 70: after the end --- */

static void destroy_again(void) {
    CUexternalMemory external = NULL;
    import_code(descriptor_of(), &external);
    gpu.cuDestroyExternalMemory(external);
    gpu.cuDestroyExternalMemory(external);
}

static void map_destroyed(void) {
    CUexternalMemory external = NULL;
    CUdeviceptr p;
    import_code(descriptor_of(), &external);
    gpu.cuDestroyExternalMemory(external);
    buffer_code(external, 0, SIZE, &p);
}

static int signal_of(void (*last)(void)) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        set_up();
        last();
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void row_70(void) {
    check("destroyed twice: the process ends with signal", 11, signal_of(destroy_again));
    check("a buffer of what is destroyed: likewise", 11, signal_of(map_destroyed));
}

void external_rows(void) {
    check_in_child("67", row_67);
    check_in_child("68", row_68);
    check_in_child("69", row_69);
    check_in_child("70", row_70);
}
