/*
 * Rows 58 to 60: memory of cuMemCreate as programs make it themselves, and memory pools in one
 * process and between two. Each row in a process of its own.
 */
#include "check.h"
#include "place.h"
#include "step.h"

enum { BLOCK = 2 * MIB, POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

typedef CUmemGenericAllocationHandle handle;

static handle create(size_t size, unsigned types) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = (CUmemAllocationHandleType)types};
    handle made = 0;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return gpu.cuMemCreate(&made, size, &wanted, 0) ? 0 : made;
}

static int export_code(handle block, int *descriptor) {
    return (int)gpu.cuMemExportToShareableHandle(descriptor, block,
                                                 (CUmemAllocationHandleType)POSIX, 0);
}

static int import_code(int descriptor, handle *block) {
    return (int)gpu.cuMemImportFromShareableHandle(block, (void *)(intptr_t)descriptor,
                                                   (CUmemAllocationHandleType)POSIX);
}

static int retain_code(CUdeviceptr at, handle *found) {
    return (int)gpu.cuMemRetainAllocationHandle(found, (void *)(uintptr_t)at);
}

static int map_code(CUdeviceptr at, size_t size, handle block) {
    return (int)gpu.cuMemMap(at, size, 0, block, 0);
}

static int fill_code(CUdeviceptr at, int value) {
    const int code = (int)gpu.cuMemsetD8_v2(at, (unsigned char)value, 4096);
    return code ? code : (int)gpu.cuCtxSynchronize();
}

static int64_t first_byte(CUdeviceptr at) {
    unsigned char byte = 0;
    const int code = (int)gpu.cuMemcpyDtoH_v2(&byte, at, 1);
    return code ? -code : byte;
}

static uint64_t told(CUpointer_attribute which, CUdeviceptr at) {
    uint64_t value = 0;
    return gpu.cuPointerGetAttribute(&value, which, at) ? UINT64_MAX : value;
}

/* --- 58: one process --- */

static void check_exports(void) {
    int one = -1, two = -1;
    const handle without = create(BLOCK, 0), with = create(BLOCK, POSIX);
    check("made without a handle type: export", 1, export_code(without, &one));
    check("made with a descriptor's: export", 0, export_code(with, &one));
    check("  again", 0, export_code(with, &two));
    check("  two descriptors", 1, one != two && one >= 0 && two >= 0);
    close(one);
    close(two);
    check("release both", 0, (int)(gpu.cuMemRelease(without) + gpu.cuMemRelease(with)));
}

/* Recorded without one. */
static void check_fabric(void) {
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
                                        .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    int supported = 0;
    handle made = 0;
    if (!access("/dev/nvidia-caps-imex-channels", F_OK)) {
        check_skip("a channel of IMEX");
        return;
    }
    gpu.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0);
    check("fabric handles are said to be supported", 1, supported);
    check("  memory with one, without a channel", 800,
          (int)gpu.cuMemCreate(&made, BLOCK, &wanted, 0));
}

static void check_access(CUdeviceptr at, handle a, handle b) {
    check("map one", 0, map_code(at, BLOCK, a));
    check("  fill, without access", 1, fill_code(at, 1));
    check("  access over it and a hole", 1,
          (int)place_allow(at, 2 * BLOCK, (CUmemAccess_flags)WRITE));
    check("map another beside it", 0, map_code(at + BLOCK, BLOCK, b));
    check("  access over both", 0, (int)place_allow(at, 2 * BLOCK, (CUmemAccess_flags)WRITE));
    check("  fill", 0, fill_code(at + BLOCK, 2));
}

static void check_refused_maps(CUdeviceptr at, handle b) {
    check("map over a mapping", 1, map_code(at, BLOCK, b));
    check("map off the granularity", 1, map_code(at + 2 * BLOCK + 4096, BLOCK, b));
    check("map outside of any reservation", 1, map_code(at + 64 * BLOCK, BLOCK, b));
    check("map more than the handle has", 801, map_code(at + 2 * BLOCK, 2 * BLOCK, b));
    const handle large = create(2 * BLOCK, 0);
    check("map a part of a handle", 801, map_code(at + 2 * BLOCK, BLOCK, large));
    check("  release it", 0, (int)gpu.cuMemRelease(large));
}

static void check_two_places(CUdeviceptr at, handle a) {
    check("map the first at a second place", 0, map_code(at + 2 * BLOCK, BLOCK, a));
    check("  fill there: access is each mapping's own", 1, fill_code(at + 2 * BLOCK, 3));
    check("  access", 0, (int)place_allow(at + 2 * BLOCK, BLOCK, (CUmemAccess_flags)WRITE));
    check("  fill", 0, fill_code(at + 2 * BLOCK, 3));
    check("  it is one memory", 3, first_byte(at));
}

static void check_questions(CUdeviceptr at) {
    CUdeviceptr base = 0;
    size_t size = 0;
    check("range of an address in the second mapping", 0,
          (int)gpu.cuMemGetAddressRange_v2(&base, &size, at + BLOCK + 4096));
    check("  is that mapping", 1, base == at + BLOCK && size == BLOCK);
    check("  RANGE_START is the reservation's", 1,
          told(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + BLOCK) == at);
    check("  RANGE_SIZE, too", 4 * BLOCK,
          (int64_t)told(CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + BLOCK));
    check("  BUFFER_ID is another one for each mapping", 1,
          told(CU_POINTER_ATTRIBUTE_BUFFER_ID, at) !=
              told(CU_POINTER_ATTRIBUTE_BUFFER_ID, at + 2 * BLOCK));
    check("  ALLOWED_HANDLE_TYPES", POSIX,
          (int64_t)told(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
    check("  IS_LEGACY_CUDA_IPC_CAPABLE", 0,
          (int64_t)told(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at) & 1);
}

static void check_references(CUdeviceptr at, handle a) {
    handle found = 0;
    check("retain by address", 0, retain_code(at + 4096, &found));
    check("  the handle that create gave", 1, found == a);
    check("  of an address where nothing is", 1, retain_code(at + 3 * BLOCK, &found));
    check("release what was retained", 0, (int)gpu.cuMemRelease(a));
    check("release while mapped", 0, (int)gpu.cuMemRelease(a));
    check("  once more", 1, (int)gpu.cuMemRelease(a));
    check("  reads", 3, first_byte(at));
    check("retain it again by its address", 0, retain_code(at, &found));
    check("  release", 0, (int)gpu.cuMemRelease(found));
}

/* What is mapped in the range is unmapped. */
static void check_unmap_of_holes(CUdeviceptr at) {
    const handle one = create(BLOCK, 0);
    check("unmap a mapping and what is not mapped behind it", 0,
          map_code(at, BLOCK, one) + (int)gpu.cuMemUnmap(at, 2 * BLOCK));
    check("  and before it", 0,
          map_code(at + BLOCK, BLOCK, one) + (int)gpu.cuMemUnmap(at, 2 * BLOCK));
    check("  it can be mapped again", 0, map_code(at + BLOCK, BLOCK, one));
    check("  unmap and release", 0,
          (int)gpu.cuMemUnmap(at + BLOCK, BLOCK) + (int)gpu.cuMemRelease(one));
}

static void check_unmaps(CUdeviceptr at) {
    check("free the addresses while mapped", 1, (int)gpu.cuMemAddressFree(at, 4 * BLOCK));
    check("unmap two mappings in one call", 0, (int)gpu.cuMemUnmap(at, 2 * BLOCK));
    check("unmap what is not mapped", 0, (int)gpu.cuMemUnmap(at, BLOCK));
    const handle large = create(2 * BLOCK, 0);
    check("map a block of two", 0, map_code(at, 2 * BLOCK, large));
    check("  unmap a part of it", 1, (int)gpu.cuMemUnmap(at, BLOCK));
    check("  a part of it, and another mapping", 1, (int)gpu.cuMemUnmap(at + BLOCK, 2 * BLOCK));
    check("  and all", 0, (int)gpu.cuMemUnmap(at, 2 * BLOCK));
    check("  release", 0, (int)gpu.cuMemRelease(large));
    check("unmap the second place, beyond the reservation", 0,
          (int)gpu.cuMemUnmap(at + 2 * BLOCK, 4 * BLOCK));
    check_unmap_of_holes(at);
}

static void check_another_in_its_place(CUdeviceptr at) {
    handle found = 0;
    const handle a = create(BLOCK, POSIX), b = create(BLOCK, POSIX);
    check("a block", 0, (int)place_map(at, BLOCK, a));
    check("  fill", 0, fill_code(at, 7));
    check("  another one in its place", 0,
          (int)(gpu.cuMemUnmap(at, BLOCK) + place_map(at, BLOCK, b)));
    check("  retain there", 0, retain_code(at, &found));
    check("  gives the other's handle", 1, found == b);
    check("  the first one elsewhere", 0, (int)place_map(at + BLOCK, BLOCK, a));
    check("  has its old bytes", 7, first_byte(at + BLOCK));
    check("  unmap and release", 0,
          (int)(gpu.cuMemUnmap(at, 2 * BLOCK) + gpu.cuMemRelease(a) + gpu.cuMemRelease(b) +
                gpu.cuMemRelease(found)));
}

static void check_imports(void) {
    int descriptor = -1, ends[2] = {-1, -1};
    handle one = 0, two = 0;
    const handle made = create(BLOCK, POSIX);
    check("export", 0, export_code(made, &descriptor));
    check("  release", 0, (int)gpu.cuMemRelease(made));
    check("  import it: the memory is alive", 0, import_code(descriptor, &one));
    check("  again", 0, import_code(descriptor, &two));
    check("  two handles", 1, one != two);
    check("  each is to be released", 0, (int)(gpu.cuMemRelease(one) + gpu.cuMemRelease(two)));
    close(descriptor);
    check("import of a closed descriptor", 999, import_code(descriptor, &one));
    check("import of a pipe", 999, pipe(ends) ? -1 : import_code(ends[0], &one));
    close(ends[0]);
    close(ends[1]);
}

static void row_58(void) {
    check("start", 0, (int)place_start());
    const CUdeviceptr at = place_reserve(4 * BLOCK);
    const handle a = create(BLOCK, POSIX), b = create(BLOCK, POSIX);
    check("reserve, create two", 1, at && a && b);
    check_exports();
    check_fabric();
    check_access(at, a, b);
    check_refused_maps(at, b);
    check_two_places(at, a);
    check_questions(at);
    check_references(at, a);
    check_unmaps(at);
    check("release the other", 0, (int)gpu.cuMemRelease(b));
    check_another_in_its_place(at);
    check("free the addresses", 0, (int)gpu.cuMemAddressFree(at, 4 * BLOCK));
    check("  twice", 1, (int)gpu.cuMemAddressFree(at, 4 * BLOCK));
    check_imports();
}

/* --- 59: pools, two processes that take turns --- */

/* What goes to the other one with the turn. */
struct turn {
    CUmemPoolPtrExportData pointer;
};

static void give_turn(int lane, const struct turn *turn, int descriptor) {
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {(void *)(uintptr_t)turn, sizeof *turn};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    if (sendmsg(lane, &message, MSG_NOSIGNAL) != sizeof *turn)
        _exit(3);
}

static int take_turn(int lane, struct turn *turn) {
    char room[CMSG_SPACE(sizeof(int))] = {0};
    int descriptor = -1;
    struct iovec part = {turn, sizeof *turn};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(lane, &message, 0) != sizeof *turn)
        _exit(3);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header)
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

static CUmemoryPool make_pool(unsigned types) {
    CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .handleTypes = (CUmemAllocationHandleType)types};
    CUmemoryPool pool = NULL;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return gpu.cuMemPoolCreate(&pool, &wanted) ? NULL : pool;
}

static int export_pool(CUmemoryPool pool, int *descriptor) {
    return (int)gpu.cuMemPoolExportToShareableHandle(descriptor, pool,
                                                     (CUmemAllocationHandleType)POSIX, 0);
}

static int import_pool(int descriptor, CUmemoryPool *pool) {
    return (int)gpu.cuMemPoolImportFromShareableHandle(pool, (void *)(intptr_t)descriptor,
                                                       (CUmemAllocationHandleType)POSIX, 0);
}

static CUdeviceptr from_pool(CUmemoryPool pool) {
    CUdeviceptr at = 0;
    return gpu.cuMemAllocFromPoolAsync(&at, BLOCK, pool, NULL) || gpu.cuCtxSynchronize() ? 0 : at;
}

static int free_in_order(CUdeviceptr at) {
    const int code = (int)gpu.cuMemFreeAsync(at, NULL);
    return code ? code : (int)gpu.cuCtxSynchronize();
}

static int handle_code(CUdeviceptr at) {
    CUipcMemHandle legacy;
    return (int)gpu.cuIpcGetMemHandle(&legacy, at);
}

static void check_pointer_exports(CUdeviceptr at, struct turn *turn) {
    struct turn again;
    CUdeviceptr other = 0;
    memset(turn, 0, sizeof *turn);
    memset(&again, 0, sizeof again);
    check("A: export a pointer", 0, (int)gpu.cuMemPoolExportPointer(&turn->pointer, at));
    check("  again", 0, (int)gpu.cuMemPoolExportPointer(&again.pointer, at));
    check("  equal data", 0, memcmp(turn, &again, sizeof again));
    check("  one inside the allocation", 1,
          (int)gpu.cuMemPoolExportPointer(&again.pointer, at + 4096));
    gpu.cuMemAllocAsync(&other, BLOCK, NULL);
    check("  one of the device's own pool", 1,
          (int)gpu.cuMemPoolExportPointer(&again.pointer, other));
    check("  a legacy handle of it", 1, handle_code(at));
    check("  free that other one", 0, free_in_order(other));
}

static void export_side(int lane) {
    struct turn turn = {.pointer = {{0}}};
    CUmemoryPool own = NULL;
    int descriptor = -1;
    check("A: start", 0, (int)place_start());
    gpu.cuDeviceGetDefaultMemPool(&own, 0);
    const CUmemoryPool pool = make_pool(POSIX), closed = make_pool(0);
    check("  a pool with a descriptor, one without", 1, pool && closed);
    check("  export the device's own pool", 1, export_pool(own, &descriptor));
    check("  the one without", 1, export_pool(closed, &descriptor));
    check("  the one with", 0, export_pool(pool, &descriptor));
    const CUdeviceptr at = from_pool(pool);
    check("  allocate from it, fill", 0, at ? fill_code(at, 21) : -1);
    check_pointer_exports(at, &turn);
    give_turn(lane, &turn, descriptor);
    take_turn(lane, &turn);
    check("A: free first", 0, free_in_order(at));
    const CUdeviceptr next = from_pool(pool);
    check("  allocate again, fill", 0, next ? fill_code(next, 22) : -1);
    check("  destroy the pool", 0, (int)gpu.cuMemPoolDestroy(pool));
    check("  the other, too", 0, (int)gpu.cuMemPoolDestroy(closed));
    give_turn(lane, &turn, -1);
    take_turn(lane, &turn);
    check("A: free what is left of it", 0, free_in_order(next));
}

static void import_side(int lane) {
    struct turn turn = {.pointer = {{0}}};
    CUmemoryPool pool = NULL, again = NULL;
    CUdeviceptr at = 0, same = 0, none = 0;
    const int descriptor = take_turn(lane, &turn);
    check("B: start", 0, (int)place_start());
    check("  import the pool", 0, import_pool(descriptor, &pool));
    check("  again", 0, import_pool(descriptor, &again));
    check("  import the pointer", 0, (int)gpu.cuMemPoolImportPointer(&at, pool, &turn.pointer));
    check("  reads", 21, first_byte(at));
    check("  the pointer again", 0, (int)gpu.cuMemPoolImportPointer(&same, pool, &turn.pointer));
    check("  the same address", 1, at == same);
    check("  allocate from the imported pool", 1,
          (int)gpu.cuMemAllocFromPoolAsync(&none, BLOCK, pool, NULL));
    check("  a legacy handle of its memory", 1, handle_code(at));
    give_turn(lane, &turn, -1);
    take_turn(lane, &turn);
    check("B: reads the old bytes", 21, first_byte(at));
    check("  free", 0, free_in_order(at));
    check("  it was not counted: free once more", 1, free_in_order(at));
    check("  destroy the imported pool", 0, (int)gpu.cuMemPoolDestroy(pool));
    give_turn(lane, &turn, -1);
    close(descriptor);
}

static void row_59(void) {
    int lanes[2], status = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, lanes)) {
        check_skip("no sockets");
        return;
    }
    const pid_t importer = fork();
    if (importer == 0) {
        close(lanes[0]);
        import_side(lanes[1]);
        fflush(stdout);
        _exit(0);
    }
    close(lanes[1]);
    export_side(lanes[0]);
    check("B ends with", 0, waitpid(importer, &status, 0) == importer ? status : -1);
}

/* --- 60: beyond the record, as the simulator has it --- */

static void row_60(void) {
    int devices = 0;
    CUmulticastObjectProp wanted = {.numDevices = 1, .size = BLOCK};
    handle object = 0;
    check("start", 0, (int)place_start());
    gpu.cuDeviceGetAttribute(&devices, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0);
    if (!devices) {
        check_skip("no multicast on this device");
        return;
    }
    if (gpu.cuMulticastCreate(&object, &wanted)) {
        check_skip("the device says that it has multicast, and makes no object of it");
        return;
    }
    const handle memory = create(BLOCK, POSIX);
    check("  add the device", 0, (int)gpu.cuMulticastAddDevice(object, 0));
    check("  bind memory", 0, (int)gpu.cuMulticastBindMem(object, 0, memory, 0, BLOCK, 0));
    check("  unbind", 0, (int)gpu.cuMulticastUnbind(object, 0, 0, BLOCK));
    check("  release both", 0, (int)(gpu.cuMemRelease(object) + gpu.cuMemRelease(memory)));
}

void owned_rows(void) {
    check_in_child("58", row_58);
    check_in_child("59", row_59);
    check_in_child("60", row_60);
}
