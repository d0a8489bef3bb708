/* Host memory that the driver knows; see host.h. An array sorted by address. */
#include "host.h"

#include "state.h"

static struct {
    struct host_range *ranges;
    size_t count, room;
} host;

/* The first range that ends after `address`. */
static size_t search(uint64_t address) {
    size_t low = 0, high = host.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (host.ranges[middle].base + host.ranges[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct host_range *host_find(uint64_t address) {
    size_t i = search(address);
    return i < host.count && host.ranges[i].base <= address ? &host.ranges[i] : NULL;
}

static bool make_room(void) {
    if (host.count < host.room)
        return true;
    size_t room = host.room ? 2 * host.room : 64;
    struct host_range *grown = realloc(host.ranges, room * sizeof *grown);
    if (!grown)
        return false;
    host.ranges = grown;
    host.room = room;
    return true;
}

static void insert(struct host_range range) {
    size_t i = search(range.base);
    memmove(&host.ranges[i + 1], &host.ranges[i], (host.count - i) * sizeof *host.ranges);
    host.ranges[i] = range;
    host.count++;
}

static void take_out(size_t i) {
    host.count--;
    memmove(&host.ranges[i], &host.ranges[i + 1], (host.count - i) * sizeof *host.ranges);
}

CUresult host_allocate(CUcontext context, uint64_t size, bool managed, uint64_t *base) {
    REFUSE(size > (uint64_t)1 << 46 || !make_room(), CUDA_ERROR_OUT_OF_MEMORY);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    REFUSE(at == MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    *base = (uint64_t)(uintptr_t)at;
    insert((struct host_range){*base, size, managed, false, state_serial(), context});
    return CUDA_SUCCESS;
}

CUresult host_free(uint64_t base, bool managed) {
    size_t i = search(base);
    if (i == host.count || host.ranges[i].base != base || host.ranges[i].managed != managed ||
        host.ranges[i].registered)
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)base, host.ranges[i].size);
    take_out(i);
    return CUDA_SUCCESS;
}

CUresult host_register(CUcontext context, uint64_t base, uint64_t size) {
    size_t i = search(base);
    if (i < host.count && host.ranges[i].base < base + size)
        return host.ranges[i].registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                         : CUDA_ERROR_INVALID_VALUE;
    REFUSE(!make_room(), CUDA_ERROR_OUT_OF_MEMORY);
    insert((struct host_range){base, size, false, true, state_serial(), context});
    return CUDA_SUCCESS;
}

CUresult host_unregister(uint64_t base) {
    size_t i = search(base);
    REFUSE(i == host.count || host.ranges[i].base > base, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    REFUSE(host.ranges[i].base != base || !host.ranges[i].registered, CUDA_ERROR_INVALID_VALUE);
    take_out(i);
    return CUDA_SUCCESS;
}
