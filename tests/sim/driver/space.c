/* Device addresses; see space.h. Areas of at least 1 GiB, each with a table of its blocks. */
#include "space.h"

#include "../protocol.h"

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

/* What fills slots that are taken and lead nowhere; nobody looks into it. */
static char nothing;
#define NOTHING ((struct block *)(void *)&nothing)

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

static uint64_t reserve_exactly(uint64_t base, uint64_t size) {
    void *at = mmap((void *)(uintptr_t)base, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    if (at == (void *)(uintptr_t)base)
        return base;
    munmap(at, size); /* a kernel that does not know the flag */
    return 0;
}

/* Where reserve says, or at `exact` if that is not 0. */
static bool add_area(uint64_t slots, bool single, uint64_t exact) {
    struct area *grown = realloc(space.areas, (space.count + 1) * sizeof *grown);
    struct block **at = calloc(slots, sizeof(struct block *));
    uint64_t size = slots << SIM_BLOCK_SHIFT, base = 0;
    space.areas = grown ? grown : space.areas;
    if (grown && at)
        base = exact ? reserve_exactly(exact, size) : reserve(size);
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

static uint64_t search(const struct area *area, uint64_t count, uint64_t avoid,
                       uint64_t alignment) {
    uint64_t run = 0;
    for (uint64_t i = 0; i < area->slots; i++) {
        run = area->at[i] ? 0 : run + 1;
        uint64_t start = area->base + ((i + 1 - count) << SIM_BLOCK_SHIFT);
        if (run >= count && start != avoid && start % alignment == 0)
            return start;
    }
    return 0;
}

/* Whether the whole range lies in one area and is free. */
static bool is_free(uint64_t address, uint64_t size) {
    const struct area *area = find_area(address);
    if (!area || size > area->base + (area->slots << SIM_BLOCK_SHIFT) - address)
        return false;
    const struct block *const *slot =
        (const struct block *const *)&area->at[(address - area->base) >> SIM_BLOCK_SHIFT];
    for (uint64_t i = 0; i < size >> SIM_BLOCK_SHIFT; i++)
        if (slot[i])
            return false;
    return true;
}

static bool last_fits(uint64_t size, uint64_t avoid) {
    const struct range *last = &space.last[size == SIM_BLOCK];
    return last->size == size && last->address != avoid && is_free(last->address, size);
}

/* The lowest range that is free, in a new area if need be; 0 if there is none. */
static uint64_t find_room(uint64_t size, uint64_t avoid, uint64_t alignment) {
    uint64_t count = size >> SIM_BLOCK_SHIFT, address = 0;
    bool single = size == SIM_BLOCK;
    for (size_t i = 0; i < space.count && !address; i++)
        if (space.areas[i].single == single)
            address = search(&space.areas[i], count, avoid, alignment);
    if (address)
        return address;
    /* One more than asked for, in case the first is the one to avoid. */
    uint64_t slots = count + (alignment >> SIM_BLOCK_SHIFT);
    if (!add_area(slots > AREA_SLOTS ? slots : AREA_SLOTS, single, 0))
        return 0;
    return find_room(size, avoid, alignment);
}

uint64_t space_take(uint64_t size, uint64_t avoid, struct block *block) {
    struct range retired = space.retired;
    uint64_t address = last_fits(size, avoid) ? space.last[size == SIM_BLOCK].address
                                              : find_room(size, avoid, SIM_BLOCK);
    if (!address)
        return 0;
    fill(address, size, block);
    if (retired.size) {
        fill(retired.address, retired.size, NULL);
        space.retired.size = 0;
    }
    return address;
}

static bool fits_at(uint64_t hint, uint64_t size, uint64_t alignment) {
    if (!hint || hint % alignment)
        return false;
    return is_free(hint, size) ||
           (!find_area(hint) && add_area(size >> SIM_BLOCK_SHIFT, size == SIM_BLOCK, hint));
}

uint64_t space_reserve(uint64_t size, uint64_t alignment, uint64_t hint) {
    if (alignment < SIM_BLOCK)
        alignment = SIM_BLOCK;
    uint64_t address = fits_at(hint, size, alignment) ? hint : find_room(size, 0, alignment);
    if (address)
        fill(address, size, NOTHING);
    return address;
}

void space_put(uint64_t address, uint64_t size, struct block *block) {
    fill(address, size, block ? block : NOTHING);
}

void space_give(uint64_t address, uint64_t size) {
    fill(address, size, NULL);
    space.last[size == SIM_BLOCK] = (struct range){address, size};
}

void space_retire(uint64_t address, uint64_t size) {
    if (space.retired.size)
        fill(space.retired.address, space.retired.size, NULL);
    fill(address, size, NOTHING);
    space.retired = (struct range){address, size};
}

struct block *space_block(uint64_t address) {
    struct block **slot = slot_of(address);
    return slot && *slot != NOTHING ? *slot : NULL;
}

void space_each(void (*fn)(struct block *block)) {
    const struct block *before = NULL;
    for (size_t i = 0; i < space.count; i++)
        for (uint64_t slot = 0; slot < space.areas[i].slots; slot++) {
            struct block *block = space.areas[i].at[slot];
            if (block && block != NOTHING && block != before)
                fn(block);
            before = block;
        }
}

bool space_owns(uint64_t address) {
    return find_area(address);
}
