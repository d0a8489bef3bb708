/*
 * right.c - random programs that do all of it rightly: memory of cuMemCreate, descriptors, pools,
 * legacy handles and events, in two processes that answer each other, of which one has a second
 * thread.
 *
 *   soak-right SEED STEPS
 *
 * Whatever a call answers is to be 0, and each byte is the last that was written. The seed decides
 * each step. right.py runs it in an audit, which must not find anything.
 */
#include <cuda.h>

#include "../differ/random.h"

enum { BLOCK = 2 << 20, BLOCKS = 6, PLACES = 4, KEPT = 5, POSIX = 1 };
#define POSIX_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
static unsigned long seed, step_number;
static const char *role = "first";

static void fail(const char *what, int code) {
    fprintf(stderr, "soak-right: seed %lu, step %lu, %s process: %s: %d\n", seed, step_number, role,
            what, code);
    _exit(1);
}

#define MUST(call) must(#call, (int)(call))
static void must(const char *what, int code) {
    if (code)
        fail(what, code);
}

/* --- blocks and their places: of one thread --- */

struct place {
    CUdeviceptr at; /* 0: none */
    size_t reserved;
    CUdeviceptr base;
};

struct block {
    CUmemGenericAllocationHandle handle; /* 0: released */
    size_t size;                         /* 0: there is none */
    bool shareable, imported;
    unsigned char byte;
    struct place places[PLACES];
};

struct pooled {
    CUmemoryPool pool; /* NULL: none */
    CUdeviceptr pointers[KEPT];
};

struct local {
    struct block blocks[BLOCKS];
    struct pooled pools[2];
    CUdeviceptr plain[KEPT];
    CUstream stream;
};

static size_t places_of(const struct block *block) {
    size_t count = 0;
    for (int i = 0; i < PLACES; i++)
        count += block->places[i].at != 0;
    return count;
}

static void allow(CUdeviceptr at, size_t size) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    MUST(cuMemSetAccess(at, size, &access, 1));
}

static void check_byte(CUdeviceptr at, size_t size, unsigned char byte) {
    unsigned char ends[2];
    MUST(cuMemcpyDtoH(&ends[0], at, 1));
    MUST(cuMemcpyDtoH(&ends[1], at + size - 1, 1));
    if (ends[0] != byte || ends[1] != byte)
        fail("a byte is another one", ends[0] << 8 | byte);
}

static void create(struct block *block, struct numbers *numbers) {
    const bool shareable = one_of(numbers, 2);
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = shareable ? POSIX_TYPE : 0,
                                        .location = here};
    *block = (struct block){.size = (1 + number_below(numbers, 3)) * (size_t)BLOCK,
                            .shareable = shareable};
    MUST(cuMemCreate(&block->handle, block->size, &wanted, 0));
}

static void map(struct block *block, struct numbers *numbers) {
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &block->places[i];
        if (place->at)
            continue;
        place->reserved = block->size + number_below(numbers, 2) * (size_t)BLOCK;
        MUST(cuMemAddressReserve(&place->base, place->reserved, 0, 0, 0));
        place->at = place->base + place->reserved - block->size;
        MUST(cuMemMap(place->at, block->size, 0, block->handle, 0));
        allow(place->at, block->size);
        return;
    }
}

static void unmap(struct block *block, int i) {
    struct place *place = &block->places[i];
    if (!place->at)
        return;
    MUST(cuMemUnmap(place->at, block->size));
    MUST(cuMemAddressFree(place->base, place->reserved));
    place->at = 0;
}

static void use(struct block *block, struct numbers *numbers) {
    const unsigned char byte = (unsigned char)number_below(numbers, 256);
    const CUdeviceptr *written = NULL;
    for (int i = 0; i < PLACES; i++) {
        if (!block->places[i].at)
            continue;
        if (!written)
            MUST(cuMemsetD8(block->places[i].at, byte, block->size));
        written = &block->places[i].at;
        MUST(cuCtxSynchronize());
        check_byte(*written, block->size, byte);
    }
    block->byte = written ? byte : block->byte;
}

/* One reference more, by an address, and back. */
static void retain(struct block *block) {
    CUmemGenericAllocationHandle again;
    for (int i = 0; i < PLACES; i++)
        if (block->places[i].at) {
            MUST(cuMemRetainAllocationHandle(&again, (void *)block->places[i].at));
            MUST(cuMemRelease(again));
            return;
        }
}

/* Two blocks side by side: one access, one copy and one unmap for both. */
static void pair(struct numbers *numbers) {
    struct block one, other;
    CUdeviceptr at;
    create(&one, numbers);
    create(&other, numbers);
    const size_t size = one.size + other.size;
    const unsigned char byte = (unsigned char)number_below(numbers, 256);
    MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
    MUST(cuMemMap(at, one.size, 0, one.handle, 0));
    MUST(cuMemMap(at + one.size, other.size, 0, other.handle, 0));
    if (one_of(numbers, 2)) {
        MUST(cuMemRelease(one.handle));
        one.handle = 0;
    }
    allow(at, size);
    MUST(cuMemsetD8(at, byte, size));
    MUST(cuCtxSynchronize());
    check_byte(at, size, byte);
    if (one_of(numbers, 2)) {
        MUST(cuMemUnmap(at, size));
    } else {
        MUST(cuMemUnmap(at + one.size, other.size));
        MUST(cuMemUnmap(at, one.size));
    }
    MUST(cuMemAddressFree(at, size));
    MUST(cuMemRelease(other.handle));
    if (one.handle)
        MUST(cuMemRelease(one.handle));
}

/* In any order; what is mapped lives on. */
static void end(struct block *block, struct numbers *numbers) {
    const bool before = one_of(numbers, 2);
    if (before && block->handle)
        MUST(cuMemRelease(block->handle));
    for (int i = 0; i < PLACES; i++)
        unmap(block, i);
    if (!before && block->handle)
        MUST(cuMemRelease(block->handle));
    block->size = 0;
}

/* --- pools and plain memory: of one thread --- */

static CUmemoryPool new_pool(bool shareable) {
    const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .handleTypes = shareable ? POSIX_TYPE : 0,
                                   .location = here};
    CUmemoryPool pool;
    MUST(cuMemPoolCreate(&pool, &wanted));
    return pool;
}

static void end_pool(struct local *mine, struct pooled *pooled) {
    for (int i = 0; i < KEPT; i++)
        if (pooled->pointers[i])
            MUST(cuMemFreeAsync(pooled->pointers[i], mine->stream));
    MUST(cuStreamSynchronize(mine->stream));
    MUST(cuMemPoolDestroy(pooled->pool));
    *pooled = (struct pooled){.pool = NULL};
}

static void step_pool(struct local *mine, struct numbers *numbers) {
    struct pooled *pooled = &mine->pools[number_below(numbers, 2)];
    CUdeviceptr *pointer = &pooled->pointers[number_below(numbers, KEPT)];
    if (!pooled->pool) {
        pooled->pool = new_pool(one_of(numbers, 2));
    } else if (*pointer) {
        MUST(one_of(numbers, 2) ? cuMemFreeAsync(*pointer, mine->stream) : cuMemFree(*pointer));
        *pointer = 0;
    } else if (one_of(numbers, 6)) {
        end_pool(mine, pooled);
    } else {
        MUST(cuMemAllocFromPoolAsync(pointer, BLOCK, pooled->pool, mine->stream));
        MUST(cuMemsetD8Async(*pointer, 7, BLOCK, mine->stream));
        MUST(cuStreamSynchronize(mine->stream));
    }
}

static void step_plain(struct local *mine, struct numbers *numbers) {
    CUdeviceptr *plain = &mine->plain[number_below(numbers, KEPT)];
    if (*plain) {
        MUST(cuMemFree(*plain));
        *plain = 0;
        return;
    }
    if (one_of(numbers, 2))
        MUST(cuMemAlloc(plain, BLOCK));
    else
        MUST(cuMemAllocAsync(plain, BLOCK, mine->stream));
    MUST(cuStreamSynchronize(mine->stream));
    MUST(cuMemsetD8(*plain, 9, BLOCK));
    check_byte(*plain, BLOCK, 9);
}

/* --- a step of one thread --- */

static void step_block(struct block *block, struct numbers *numbers) {
    if (!block->size) {
        create(block, numbers);
        return;
    }
    switch (number_below(numbers, 7)) {
    case 0:
        end(block, numbers);
        break;
    case 1:
        unmap(block, (int)number_below(numbers, PLACES));
        if (!block->handle && !places_of(block))
            block->size = 0; /* it went with its last mapping */
        break;
    case 2:
        if (block->handle && places_of(block)) {
            MUST(cuMemRelease(block->handle));
            block->handle = 0;
        }
        break;
    case 3:
        retain(block);
        break;
    case 4:
        use(block, numbers);
        break;
    default:
        if (block->handle)
            map(block, numbers);
    }
}

static void step_local(struct local *mine, struct numbers *numbers) {
    switch (number_below(numbers, 8)) {
    case 0:
        pair(numbers);
        break;
    case 1:
    case 2:
        step_pool(mine, numbers);
        break;
    case 3:
        step_plain(mine, numbers);
        break;
    default:
        step_block(&mine->blocks[number_below(numbers, BLOCKS)], numbers);
    }
}

static void end_all(struct local *mine, struct numbers *numbers) {
    for (int i = 0; i < BLOCKS; i++)
        if (mine->blocks[i].size)
            end(&mine->blocks[i], numbers);
    for (int i = 0; i < 2; i++)
        if (mine->pools[i].pool)
            end_pool(mine, &mine->pools[i]);
    for (int i = 0; i < KEPT; i++)
        if (mine->plain[i])
            MUST(cuMemFree(mine->plain[i]));
    MUST(cuStreamDestroy(mine->stream));
}

/* --- two processes: the first says what is done, the second answers when it is --- */

enum act { LOCAL, SHARE, DROP, POOL, LEGACY, EVENT, OVER };
struct message {
    enum act act;
    unsigned long step;
    size_t size;
    unsigned char byte, keeps;
    CUmemPoolPtrExportData pointer;
    CUipcMemHandle handle;
    CUipcEventHandle event;
};

static int peer;

static void send_message(const struct message *message, int descriptor) {
    struct iovec part = {(void *)message, sizeof(*message)};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr all = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        all.msg_control = control;
        all.msg_controllen = sizeof(control);
        struct cmsghdr *head = CMSG_FIRSTHDR(&all);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
    }
    if (sendmsg(peer, &all, MSG_NOSIGNAL) != (ssize_t)sizeof(*message))
        fail("the other process is gone", errno);
}

/* The descriptor that came along, or -1. */
static int take_message(struct message *message) {
    struct iovec part = {message, sizeof(*message)};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr all = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = control,
                         .msg_controllen = sizeof(control)};
    int descriptor = -1;
    if (recvmsg(peer, &all, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*message))
        fail("the other process is gone", errno);
    const struct cmsghdr *head = CMSG_FIRSTHDR(&all);
    if (head)
        memcpy(&descriptor, CMSG_DATA(head), sizeof(int));
    return descriptor;
}

static void say(void) {
    send_message(&(struct message){.act = OVER}, -1);
}

static void await(void) {
    struct message done;
    take_message(&done);
}

/* Another file gets the number that a descriptor had. */
static void reuse_number(struct numbers *numbers) {
    static int other = -1;
    if (other >= 0)
        close(other);
    other = one_of(numbers, 2) ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
}

/* A block goes over by a descriptor. Who made it may release it before the other does. */
static void share(struct local *mine, struct numbers *numbers) {
    struct block *block = &mine->blocks[number_below(numbers, BLOCKS)];
    int descriptor;
    if (!block->size || !block->handle || !block->shareable)
        return;
    if (!places_of(block))
        map(block, numbers);
    use(block, numbers);
    MUST(cuMemExportToShareableHandle(&descriptor, block->handle, POSIX_TYPE, 0));
    const bool early = one_of(numbers, 2);
    send_message(&(struct message){.act = SHARE,
                                   .step = step_number,
                                   .size = block->size,
                                   .byte = block->byte,
                                   .keeps = one_of(numbers, 2)},
                 descriptor);
    if (early)
        close(descriptor);
    if (early)
        reuse_number(numbers);
    if (one_of(numbers, 3)) /* while the other uses it */
        end(block, numbers);
    await();
    if (!early)
        close(descriptor);
}

static struct block kept[KEPT];

static void take_share(const struct message *message, int descriptor, struct numbers *numbers) {
    struct block got = {.size = message->size, .imported = true};
    MUST(cuMemImportFromShareableHandle(&got.handle, (void *)(intptr_t)descriptor, POSIX_TYPE));
    close(descriptor);
    reuse_number(numbers);
    map(&got, numbers);
    check_byte(got.places[0].at, got.size, message->byte);
    if (message->keeps)
        for (int i = 0; i < KEPT; i++)
            if (!kept[i].size) {
                kept[i] = got;
                return;
            }
    end(&got, numbers);
}

static void drop_kept(struct numbers *numbers) {
    struct block *one = &kept[number_below(numbers, KEPT)];
    if (one->size)
        end(one, numbers);
}

/* The importer frees first, and the pool's memory goes then. */
static void share_pool(struct local *mine, struct numbers *numbers) {
    int descriptor;
    CUdeviceptr pointer;
    const CUmemoryPool pool = new_pool(true);
    struct message message = {.act = POOL, .step = step_number, .size = BLOCK, .byte = 5};
    MUST(cuMemAllocFromPoolAsync(&pointer, BLOCK, pool, mine->stream));
    MUST(cuMemsetD8Async(pointer, message.byte, BLOCK, mine->stream));
    MUST(cuStreamSynchronize(mine->stream));
    MUST(cuMemPoolExportToShareableHandle(&descriptor, pool, POSIX_TYPE, 0));
    MUST(cuMemPoolExportPointer(&message.pointer, pointer));
    send_message(&message, descriptor);
    close(descriptor);
    reuse_number(numbers);
    await();
    MUST(one_of(numbers, 2) ? cuMemFreeAsync(pointer, mine->stream) : cuMemFree(pointer));
    MUST(cuStreamSynchronize(mine->stream));
    MUST(cuMemPoolDestroy(pool));
}

static void take_pool(struct local *mine, struct message *message, int descriptor,
                      struct numbers *numbers) {
    CUmemoryPool pool;
    CUdeviceptr pointer;
    MUST(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, POSIX_TYPE, 0));
    close(descriptor);
    reuse_number(numbers);
    MUST(cuMemPoolImportPointer(&pointer, pool, &message->pointer));
    check_byte(pointer, message->size, message->byte);
    MUST(one_of(numbers, 2) ? cuMemFreeAsync(pointer, mine->stream) : cuMemFree(pointer));
    MUST(cuStreamSynchronize(mine->stream));
    MUST(cuMemPoolDestroy(pool));
}

static void share_legacy(struct numbers *numbers) {
    CUdeviceptr pointer;
    struct message message = {.act = LEGACY, .step = step_number, .size = BLOCK};
    message.byte = (unsigned char)number_below(numbers, 256);
    MUST(cuMemAlloc(&pointer, BLOCK));
    MUST(cuMemsetD8(pointer, message.byte, BLOCK));
    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&message.handle, pointer));
    send_message(&message, -1);
    await();
    MUST(cuMemFree(pointer));
}

static void take_legacy(const struct message *message) {
    CUdeviceptr pointer;
    MUST(cuIpcOpenMemHandle(&pointer, message->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    check_byte(pointer, message->size, message->byte);
    MUST(cuIpcCloseMemHandle(pointer));
}

/* Recorded by either, before the other waits for it, and twice now and then: the importer may
 * destroy before or after, and the next event may have the same handle. */
static void share_event(const struct local *mine, struct numbers *numbers) {
    CUevent event;
    struct message message = {.act = EVENT, .step = step_number};
    message.keeps = (unsigned char)number_below(numbers, 4);
    MUST(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    if (!(message.keeps & 1))
        MUST(cuEventRecord(event, mine->stream));
    MUST(cuIpcGetEventHandle(&message.event, event));
    send_message(&message, -1);
    await();
    MUST(cuStreamWaitEvent(mine->stream, event, 0));
    MUST(cuEventRecord(event, mine->stream));
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
}

static void take_event(const struct local *mine, const struct message *message) {
    CUevent event, again = NULL;
    MUST(cuIpcOpenEventHandle(&event, message->event));
    if (message->keeps & 2)
        MUST(cuIpcOpenEventHandle(&again, message->event));
    if (message->keeps & 1)
        MUST(cuEventRecord(event, mine->stream));
    MUST(cuStreamWaitEvent(mine->stream, again ? again : event, 0));
    MUST(cuEventSynchronize(event));
    MUST(cuEventDestroy(event));
    if (again)
        MUST(cuEventDestroy(again));
}

/* --- the two --- */

static CUcontext begin(struct local *mine) {
    CUcontext context;
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&mine->stream, CU_STREAM_NON_BLOCKING));
    return context;
}

static void second(void) {
    struct local mine = {.stream = NULL};
    struct numbers last = numbers_from(seed, 1000000, 1);
    struct message message;
    role = "second";
    begin(&mine);
    for (;;) {
        const int descriptor = take_message(&message);
        step_number = message.step;
        struct numbers numbers = numbers_from(seed, message.step, 1);
        if (message.act == OVER)
            break;
        if (message.act == SHARE)
            take_share(&message, descriptor, &numbers);
        else if (message.act == POOL)
            take_pool(&mine, &message, descriptor, &numbers);
        else if (message.act == LEGACY)
            take_legacy(&message);
        else if (message.act == EVENT)
            take_event(&mine, &message);
        else if (message.act == DROP)
            drop_kept(&numbers);
        else
            step_local(&mine, &numbers);
        say();
    }
    for (int i = 0; i < KEPT; i++)
        if (kept[i].size)
            end(&kept[i], &last);
    end_all(&mine, &last);
}

struct beside {
    CUcontext context;
    unsigned long steps;
};

static void *run_beside(void *arg) {
    const struct beside *beside = arg;
    struct local mine = {.stream = NULL};
    struct numbers last = numbers_from(seed, 1000000, 2);
    MUST(cuCtxSetCurrent(beside->context));
    MUST(cuStreamCreate(&mine.stream, CU_STREAM_NON_BLOCKING));
    for (unsigned long i = 0; i < beside->steps; i++) {
        struct numbers numbers = numbers_from(seed, i, 2);
        step_local(&mine, &numbers);
    }
    end_all(&mine, &last);
    return NULL;
}

static void step_first(struct local *mine, struct numbers *numbers) {
    switch (number_below(numbers, 11)) {
    case 0:
    case 1:
        share(mine, numbers);
        break;
    case 2:
        share_pool(mine, numbers);
        break;
    case 3:
        share_legacy(numbers);
        break;
    case 10:
        share_event(mine, numbers);
        break;
    case 4:
    case 5:
        send_message(
            &(struct message){.act = one_of(numbers, 2) ? LOCAL : DROP, .step = step_number}, -1);
        await();
        break;
    default:
        step_local(mine, numbers);
    }
}

static void first(unsigned long steps, pid_t other) {
    struct local mine = {.stream = NULL};
    struct beside beside = {.steps = steps};
    struct numbers last = numbers_from(seed, 1000000, 0);
    pthread_t thread;
    int status = 0;
    beside.context = begin(&mine);
    const bool threaded = seed % 2;
    if (threaded && pthread_create(&thread, NULL, run_beside, &beside) != 0)
        fail("pthread_create", errno);
    for (step_number = 0; step_number < steps; step_number++) {
        struct numbers numbers = numbers_from(seed, step_number, 0);
        step_first(&mine, &numbers);
    }
    if (threaded)
        pthread_join(thread, NULL);
    say();
    if (waitpid(other, &status, 0) != other || status)
        fail("the second process ended with", status);
    end_all(&mine, &last);
}

int main(int count, char **words) {
    int ends[2];
    if (count != 3)
        return 2;
    seed = strtoul(words[1], NULL, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return 2;
    const pid_t other = fork(); /* neither has used CUDA yet */
    if (other < 0)
        return 2;
    peer = ends[other == 0];
    close(ends[other != 0]);
    if (other == 0)
        second();
    else
        first(strtoul(words[2], NULL, 0), other);
    return 0;
}
