/* The memory of one simulated card; see memory.h. */
#include "memory.h"

#include "../protocol.h"

enum { ADDRESS_FACTOR = 8 };

int memory_create(struct memory *memory, uint64_t total) {
    memory->total = total;
    memory->used = 0;
    memory->slots = (total * ADDRESS_FACTOR) >> SIM_BLOCK_SHIFT;
    memory->taken = calloc((memory->slots + 63) / 64, sizeof *memory->taken);
    if (!memory->taken)
        return -ENOMEM;
    memory->fd = memfd_create("gpusim-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->fd < 0 || ftruncate(memory->fd, (off_t)(memory->slots << SIM_BLOCK_SHIFT)))
        return -errno;
    /* No client can shrink it under the others. */
    fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return 0;
}

static bool slot_taken(const struct memory *memory, uint64_t slot) {
    return memory->taken[slot / 64] >> (slot % 64) & 1;
}

static void mark(struct memory *memory, uint64_t first, uint64_t count) {
    for (uint64_t slot = first; slot < first + count; slot++)
        memory->taken[slot / 64] ^= (uint64_t)1 << (slot % 64);
}

/* First fit, so that neighbouring allocations become neighbouring ranges. */
static int reserve(struct memory *memory, uint64_t size, uint64_t *offset) {
    uint64_t count = size >> SIM_BLOCK_SHIFT, run = 0;
    for (uint64_t slot = 0; slot < memory->slots; slot++) {
        if (slot % 64 == 0 && memory->taken[slot / 64] == UINT64_MAX) {
            run = 0;
            slot += 63;
            continue;
        }
        run = slot_taken(memory, slot) ? 0 : run + 1;
        if (run == count) {
            mark(memory, slot + 1 - count, count);
            *offset = (slot + 1 - count) << SIM_BLOCK_SHIFT;
            return 0;
        }
    }
    return -ENOMEM;
}

int memory_take(struct memory *memory, uint64_t size, uint64_t *offset) {
    if (size > memory->total - memory->used || reserve(memory, size, offset))
        return -ENOMEM;
    memory->used += size;
    return 0;
}

void memory_give(struct memory *memory, uint64_t offset, uint64_t size) {
    fallocate(memory->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
    mark(memory, offset >> SIM_BLOCK_SHIFT, size >> SIM_BLOCK_SHIFT);
    memory->used -= size;
}

/* Pages of zeros stay holes. */
static void copy(const struct memory *memory, uint64_t to, uint64_t from, uint64_t size) {
    static char bytes[1 << 16];
    static const char zeros[sizeof bytes];
    for (uint64_t done = 0; done < size; done += sizeof bytes)
        if (pread(memory->fd, bytes, sizeof bytes, (off_t)(from + done)) == sizeof bytes &&
            memcmp(bytes, zeros, sizeof bytes) != 0)
            (void)!pwrite(memory->fd, bytes, sizeof bytes, (off_t)(to + done));
}

int memory_copy_away(struct memory *memory, uint64_t from, uint64_t size, uint64_t *offset) {
    if (reserve(memory, size, offset))
        return -ENOMEM;
    copy(memory, *offset, from, size);
    return 0;
}
