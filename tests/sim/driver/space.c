/* Device addresses; see space.h. Areas of at least 1 GiB, each with a table of its blocks. */
#include "space.h"

#include "../protocol.h"

#include <sys/mman.h>

enum { AREA_SLOTS = 512 };

/* Single blocks, the homes of small allocations, lie apart from larger ranges. */
struct area {
    uint64_t base, slots;
    bool single;
    struct block **at;
};

struct range {
    uint64_t address, size;
};

static struct {
    struct area *areas; /* sorted by base */
    size_t count;
    struct range last[2], retired; /* last: of larger ranges, of single blocks */
} space;

static struct area *find_area(uint64_t address) {
    size_t low = 0, high = space.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        struct area *area = &space.areas[middle];
        if (address < area->base)
            high = middle;
        else if (address >= area->base + (area->slots << SIM_BLOCK_SHIFT))
            low = middle + 1;
        else
            return area;
    }
    return NULL;
}

static struct block **slot_of(uint64_t address) {
    struct area *area = find_area(address);
    return area ? &area->at[(address - area->base) >> SIM_BLOCK_SHIFT] : NULL;
}

static void fill(uint64_t address, uint64_t size, struct block *block) {
    struct block **slot = slot_of(address);
    for (uint64_t i = 0; i < size >> SIM_BLOCK_SHIFT; i++)
        slot[i] = block;
}

/* An aligned reservation; what sticks out of it at both ends goes back at once. */
static uint64_t reserve(uint64_t size) {
    uint64_t whole = size + SIM_BLOCK;
    void *at = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    uint64_t raw = (uint64_t)(uintptr_t)at;
    uint64_t base = (raw + SIM_BLOCK - 1) & ~(SIM_BLOCK - 1);
    if (base > raw)
        munmap(at, base - raw);
    if (base + size < raw + whole)
        munmap((void *)(uintptr_t)(base + size), raw + whole - base - size);
    return base;
}

static bool add_area(uint64_t slots, bool single) {
    struct area *grown = realloc(space.areas, (space.count + 1) * sizeof *grown);
    struct block **at = calloc(slots, sizeof(struct block *));
    space.areas = grown ? grown : space.areas;
    uint64_t base = grown && at ? reserve(slots << SIM_BLOCK_SHIFT) : 0;
    if (!base) {
        free(at);
        // cppcheck-suppress memleak ; it is space.areas now
        return false;
    }
    size_t i = space.count++;
    for (; i > 0 && grown[i - 1].base > base; i--)
        grown[i] = grown[i - 1];
    grown[i] = (struct area){base, slots, single, at};
    return true;
}

static uint64_t search(const struct area *area, uint64_t count, uint64_t avoid) {
    uint64_t run = 0;
    for (uint64_t i = 0; i < area->slots; i++) {
        run = area->at[i] ? 0 : run + 1;
        uint64_t start = area->base + ((i + 1 - count) << SIM_BLOCK_SHIFT);
        if (run >= count && start != avoid)
            return start;
    }
    return 0;
}

static bool last_fits(uint64_t size, uint64_t avoid) {
    const struct range *last = &space.last[size == SIM_BLOCK];
    struct block **slot = last->size == size ? slot_of(last->address) : NULL;
    if (!slot || last->address == avoid)
        return false;
    for (uint64_t i = 0; i < size >> SIM_BLOCK_SHIFT; i++)
        if (slot[i])
            return false;
    return true;
}

uint64_t space_take(uint64_t size, uint64_t avoid, struct block *block) {
    uint64_t count = size >> SIM_BLOCK_SHIFT, address = 0;
    struct range retired = space.retired;
    bool single = size == SIM_BLOCK;
    if (last_fits(size, avoid))
        address = space.last[single].address;
    for (size_t i = 0; i < space.count && !address; i++)
        if (space.areas[i].single == single)
            address = search(&space.areas[i], count, avoid);
    /* One more than asked for, in case the first is the one to avoid. */
    if (!address && add_area(count + 1 > AREA_SLOTS ? count + 1 : AREA_SLOTS, single))
        return space_take(size, avoid, block);
    if (!address)
        return 0;
    fill(address, size, block);
    if (retired.size) {
        fill(retired.address, retired.size, NULL);
        space.retired.size = 0;
    }
    return address;
}

void space_give(uint64_t address, uint64_t size) {
    fill(address, size, NULL);
    space.last[size == SIM_BLOCK] = (struct range){address, size};
}

void space_retire(uint64_t address, uint64_t size) {
    /* Any mark that is not null and that nobody looks up keeps the range taken. */
    static char taken;
    if (space.retired.size)
        fill(space.retired.address, space.retired.size, NULL);
    fill(address, size, (struct block *)(void *)&taken);
    space.retired = (struct range){address, size};
}

struct block *space_block(uint64_t address) {
    struct block **slot = slot_of(address);
    bool retired = space.retired.size && address - space.retired.address < space.retired.size;
    return slot && !retired ? *slot : NULL;
}

bool space_owns(uint64_t address) {
    return find_area(address);
}
