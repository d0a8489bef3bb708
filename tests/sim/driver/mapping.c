/* Where VMM memory lies; see mapping.h. */
#include "mapping.h"

#include "block.h"
#include "physical.h"
#include "space.h"
#include "state.h"

#include "../protocol.h"

struct reservation {
    uint64_t base, size;
    struct reservation *next;
};

struct mapping {
    struct block block;
    struct physical *memory;
    unsigned held;
    bool closing;                          /* somebody waits until nobody holds it */
    unsigned char access[SIM_MAX_DEVICES]; /* by card */
};

static struct reservation *reservations;

static bool whole(uint64_t address, uint64_t size) {
    return size && address % SIM_BLOCK == 0 && size % SIM_BLOCK == 0 &&
           size <= UINT64_MAX - address;
}

CUresult mapping_reserve(uint64_t size, uint64_t alignment, uint64_t hint, CUdeviceptr *out) {
    REFUSE(!whole(0, size) || alignment & (alignment - 1), CUDA_ERROR_INVALID_VALUE);
    struct reservation *made = calloc(1, sizeof *made);
    REFUSE(!made, CUDA_ERROR_OUT_OF_MEMORY);
    made->base = size >> 47 ? 0 : space_reserve(size, alignment, hint);
    if (!made->base) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->size = size;
    made->next = reservations;
    reservations = made;
    *out = made->base;
    return CUDA_SUCCESS;
}

/* Whether nothing is mapped anywhere in the range. */
static bool is_empty(uint64_t base, uint64_t size) {
    for (uint64_t done = 0; done < size; done += SIM_BLOCK)
        if (space_block(base + done))
            return false;
    return true;
}

CUresult mapping_give_back(uint64_t base, uint64_t size) {
    struct reservation **link = &reservations;
    while (*link && (*link)->base != base)
        link = &(*link)->next;
    struct reservation *given = *link;
    REFUSE(!given || given->size != size || !is_empty(base, size), CUDA_ERROR_INVALID_VALUE);
    *link = given->next;
    free(given);
    space_give(base, size);
    return CUDA_SUCCESS;
}

bool mapping_reservation(uint64_t address, uint64_t *base, uint64_t *size) {
    const struct reservation *r = reservations;
    while (r && (address < r->base || address - r->base >= r->size))
        r = r->next;
    if (r) {
        *base = r->base;
        *size = r->size;
    }
    return r;
}

static bool is_reserved(uint64_t address, uint64_t size) {
    uint64_t base, whole_size;
    return mapping_reservation(address, &base, &whole_size) && size <= base + whole_size - address;
}

CUresult mapping_map(uint64_t address, uint64_t size, struct physical *memory) {
    if (!whole(address, size) || size != memory->size || !is_reserved(address, size) ||
        !is_empty(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    REFUSE(!mapping, CUDA_ERROR_OUT_OF_MEMORY);
    mapping->memory = memory;
    mapping->block = (struct block){.id = memory->id,
                                    .address = address,
                                    .size = size,
                                    .offset = memory->offset,
                                    .requested = size,
                                    .serial = state_serial(),
                                    .card = memory->card,
                                    .kind = BLOCK_MAPPED,
                                    .mapping = mapping};
    memory->mappings++;
    space_put(address, size, &mapping->block);
    return CUDA_SUCCESS;
}

/* The mapping that begins there, or NULL. */
static struct mapping *starting_at(uint64_t address) {
    struct block *block = space_block(address);
    return block && block->mapping && block->address == address ? block->mapping : NULL;
}

/* Whether mappings fill the range, from its first byte to its last. */
static bool is_filled(uint64_t address, uint64_t size) {
    const struct mapping *mapping;
    uint64_t done = 0;
    while (done < size && (mapping = starting_at(address + done)))
        done += mapping->block.size;
    return done == size;
}

static bool is_within(uint64_t address) {
    const struct block *block = space_block(address);
    return block && block->mapping && block->address != address;
}

/* Whether the range begins and ends within no mapping, and begins in a reservation: recorded
 * (H200, driver 580, 2026-11-28). What is not mapped in it does not matter, nor where it ends. */
static bool cuts_nothing(uint64_t address, uint64_t size) {
    return is_reserved(address, SIM_BLOCK) && !is_within(address) && !is_within(address + size);
}

/* The next mapping that begins at *at or behind it and before `end`; *at is behind it then. */
static struct mapping *next_mapping(uint64_t *at, uint64_t end) {
    struct mapping *mapping = NULL;
    while (*at < end && !mapping) {
        mapping = starting_at(*at);
        *at += mapping ? mapping->block.size : SIM_BLOCK;
    }
    return mapping;
}

/* Says of each mapping of a range whether somebody waits for it. How many hold them. */
static unsigned set_closing(uint64_t address, uint64_t size, bool closing) {
    unsigned held = 0;
    const uint64_t end = address + size;
    for (struct mapping *mapping; (mapping = next_mapping(&address, end));) {
        mapping->closing = closing;
        held += mapping->held;
    }
    return held;
}

/* Waits until nobody holds the range; the caller then has it alone until it gives the lock up. One
 * at a time, so that what it waits for stays there. */
static CUresult have_alone(uint64_t address, uint64_t size,
                           bool (*fits)(uint64_t address, uint64_t size)) {
    static bool waited_for;
    while (waited_for)
        state_wait();
    REFUSE(!whole(address, size) || !fits(address, size), CUDA_ERROR_INVALID_VALUE);
    waited_for = true;
    while (set_closing(address, size, true))
        state_wait();
    set_closing(address, size, false);
    waited_for = false;
    state_changed();
    return CUDA_SUCCESS;
}

CUresult mapping_unmap(uint64_t address, uint64_t size) {
    const uint64_t end = address + size;
    REFUSE(have_alone(address, size, cuts_nothing), CUDA_ERROR_INVALID_VALUE);
    for (struct mapping *mapping; (mapping = next_mapping(&address, end));) {
        space_put(mapping->block.address, mapping->block.size, NULL);
        mapping->memory->mappings--;
        physical_release_unused(mapping->memory);
        free(mapping);
    }
    return CUDA_SUCCESS;
}

CUresult mapping_set_access(uint64_t address, uint64_t size, uint32_t card, unsigned access,
                            bool *changed) {
    REFUSE(have_alone(address, size, is_filled), CUDA_ERROR_INVALID_VALUE);
    for (uint64_t done = 0; done < size;) {
        struct mapping *mapping = starting_at(address + done);
        *changed = *changed || mapping->access[card] != access;
        mapping->access[card] = (unsigned char)access;
        done += mapping->block.size;
    }
    return CUDA_SUCCESS;
}

struct physical *mapping_memory(uint64_t address) {
    const struct block *block = space_block(address);
    return block && block->mapping ? block->mapping->memory : NULL;
}

void mapping_hold(struct mapping *mapping, int more) {
    if (!mapping)
        return;
    mapping->held += (unsigned)more;
    if (!mapping->held)
        state_changed();
}

bool mapping_closing(const struct mapping *mapping) {
    return mapping && mapping->closing;
}

unsigned mapping_access(const struct block *block, uint32_t card) {
    return block->mapping ? block->mapping->access[card] : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

bool mapping_allows(const struct block *block, uint32_t card, bool writes) {
    const unsigned access = mapping_access(block, card);
    return writes ? access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE : access != 0;
}

unsigned mapping_handle_types(const struct block *block) {
    return block->mapping->memory->properties.requestedHandleTypes;
}

bool mapping_rdma(const struct block *block) {
    const struct physical *memory = block->mapping->memory;
    return memory->properties.allocFlags.gpuDirectRDMACapable && !memory->imported;
}
