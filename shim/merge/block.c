#include "block.h"

#include <stdlib.h>

#include "driver/driver_ops.h"
#include "vmm/mapping.h"

static const struct gps_state_row states[] = {GPS_BLOCK_STATES};

void gps_block_set_state(struct gps_block *block, enum gps_block_state state) {
    gps_transition_check("merged block", states, block->state, state);
    block->state = (uint8_t)state;
}

static uint64_t block_address(const struct gps_area *area, const struct gps_block *block) {
    return area->pointer + block->at;
}

/* Memory of cuMemCreate merges only while no device but its own reaches it. */
static int block_allow(const struct gps_area *area, uint64_t pointer, uint64_t size,
                       bool writable) {
    return area->created ? gps_ops->allow(pointer, size, area->device, writable)
                         : gps_mapping_allow(pointer, size, area->device, writable);
}

int gps_block_map(const struct gps_area *area, uint64_t pointer, uint64_t size, uint64_t memory,
                  bool writable) {
    int code = gps_ops->map(pointer, size, memory);
    if (code != GPS_OK)
        return code;
    code = block_allow(area, pointer, size, writable);
    if (code != GPS_OK)
        gps_ops->unmap(pointer, size);
    return code;
}

static int block_fill(const struct gps_area *area, struct gps_block *block, uint64_t memory,
                      enum gps_block_state state) {
    const int code = gps_block_map(area, block_address(area, block), block->size, memory,
                                   state == GPS_BLOCK_PRIVATE);
    if (code != GPS_OK)
        return code;
    block->memory = memory;
    gps_block_set_state(block, state);
    return GPS_OK;
}

int gps_block_make(const struct gps_area *area, struct gps_block *block) {
    block->made_size = block->size;
    return gps_ops->block_create(area->device, block->size, &block->made);
}

void gps_block_unmake(struct gps_block *block) {
    if (block->made)
        gps_ops->block_release(block->made);
    block->made = 0;
}

bool gps_block_fits(uint64_t bytes) {
    uint64_t available, total;
    return gps_ops->memory(&available, &total) == GPS_OK && available >= bytes;
}

/* Where both do not fit, the larger memory is released first. */
static int make_exact(const struct gps_area *area, struct gps_block *block) {
    struct gps_block larger = *block;
    block->made = 0;
    int code = gps_block_make(area, block);
    gps_block_unmake(&larger);
    return code == GPS_OUT_OF_MEMORY ? gps_block_make(area, block) : code;
}

/* The memory that was made for the block, or is made now; the caller owns it. */
static int take_made(const struct gps_area *area, struct gps_block *block, uint64_t *memory) {
    const bool exact = block->made && block->made_size == block->size;
    const int code = exact ? GPS_OK : make_exact(area, block);
    if (code == GPS_OK) {
        *memory = block->made;
        block->made = 0;
    }
    return code;
}

int gps_block_back(const struct gps_area *area, struct gps_block *block) {
    uint64_t memory;
    int code = take_made(area, block, &memory);
    if (code != GPS_OK)
        return code;
    code = block_fill(area, block, memory, GPS_BLOCK_PRIVATE);
    if (code != GPS_OK)
        block->made = memory;
    return code;
}

int gps_block_adopt(const struct gps_area *area, struct gps_block *block, uint64_t memory) {
    return block_fill(area, block, memory, GPS_BLOCK_SPECULATIVE);
}

static int protect(const struct gps_area *area, struct gps_block *block,
                   enum gps_block_state state) {
    const int code =
        block_allow(area, block_address(area, block), block->size, state == GPS_BLOCK_PRIVATE);
    if (code == GPS_OK)
        gps_block_set_state(block, state);
    return code;
}

int gps_block_seal(const struct gps_area *area, const struct gps_block *block) {
    return block_allow(area, block_address(area, block), block->size, false);
}

int gps_block_freeze(const struct gps_area *area, struct gps_block *block) {
    return protect(area, block, GPS_BLOCK_FROZEN);
}

/* An offer that failed may have left hashes of the bytes that the block has so far. */
int gps_block_thaw(const struct gps_area *area, struct gps_block *block) {
    const int code = protect(area, block, GPS_BLOCK_PRIVATE);
    if (code == GPS_OK) {
        free(block->chunks);
        block->chunks = NULL;
    }
    return code;
}

/* --- swapping --- */

int gps_block_view(const struct gps_area *area, uint64_t memory, uint64_t size, bool writable,
                   uint64_t *pointer) {
    uint64_t place;
    int code = gps_ops->reserve(size, &place);
    if (code != GPS_OK)
        return code;
    code = gps_block_map(area, place, size, memory, writable);
    if (code == GPS_OK)
        *pointer = place;
    else
        gps_ops->unreserve(place, size);
    return code;
}

void gps_block_unview(uint64_t pointer, uint64_t size) {
    gps_ops->unmap(pointer, size);
    gps_ops->unreserve(pointer, size);
}

static int copy_into(const struct gps_area *area, const struct gps_block *block, uint64_t memory) {
    uint64_t pointer;
    int code = gps_block_view(area, memory, block->size, true, &pointer);
    if (code == GPS_OK) {
        code = gps_ops->copy(pointer, block_address(area, block), block->size);
        gps_block_unview(pointer, block->size);
    }
    return code;
}

int gps_block_copy(const struct gps_area *area, const struct gps_block *block, uint64_t *memory) {
    uint64_t fresh;
    int code = gps_ops->block_create(area->device, block->size, &fresh);
    if (code != GPS_OK)
        return code;
    code = copy_into(area, block, fresh);
    if (code == GPS_OK)
        *memory = fresh;
    else
        gps_ops->block_release(fresh);
    return code;
}

int gps_block_replace(const struct gps_area *area, struct gps_block *block, uint64_t memory,
                      bool writable) {
    const uint64_t pointer = block_address(area, block);
    int code = gps_ops->unmap(pointer, block->size);
    if (code != GPS_OK)
        return code;
    code = gps_block_map(area, pointer, block->size, memory, writable);
    if (code != GPS_OK) {
        gps_block_map(area, pointer, block->size, block->memory, block->state == GPS_BLOCK_PRIVATE);
        return code;
    }
    gps_ops->block_release(block->memory);
    block->memory = memory;
    return GPS_OK;
}

int gps_block_place(const struct gps_area *area, uint64_t pointer, uint64_t size, uint64_t memory,
                    bool writable) {
    return area->created && !area->open ? gps_ops->map(pointer, size, memory)
                                        : gps_block_map(area, pointer, size, memory, writable);
}

int gps_block_place_all(const struct gps_area *area, const struct gps_block *blocks,
                        unsigned count) {
    unsigned i = 0;
    int code = GPS_OK;
    while (i < count && code == GPS_OK) {
        code = gps_block_place(area, block_address(area, &blocks[i]), blocks[i].size,
                               blocks[i].memory, blocks[i].state == GPS_BLOCK_PRIVATE);
        i += code == GPS_OK;
    }
    while (code != GPS_OK && i-- > 0)
        gps_ops->unmap(block_address(area, &blocks[i]), blocks[i].size);
    return code;
}

static int blocks_unmap(const struct gps_area *area, const struct gps_block *blocks,
                        unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const int code = gps_ops->unmap(block_address(area, &blocks[i]), blocks[i].size);
        if (code != GPS_OK) {
            gps_block_place_all(area, blocks, i);
            return code;
        }
    }
    return GPS_OK;
}

int gps_block_exchange(const struct gps_area *area, const struct gps_block *old, unsigned olds,
                       struct gps_block *blocks, unsigned count) {
    int code = blocks_unmap(area, old, olds);
    if (code != GPS_OK)
        return code;
    code = gps_block_place_all(area, blocks, count);
    if (code != GPS_OK) {
        gps_block_place_all(area, old, olds);
        return code;
    }
    for (unsigned i = 0; i < olds; i++) {
        gps_ops->block_release(old[i].memory);
        free(old[i].chunks);
    }
    for (unsigned i = 0; i < count; i++)
        gps_block_set_state(&blocks[i], GPS_BLOCK_FROZEN);
    return GPS_OK;
}

int gps_block_own(const struct gps_area *area, struct gps_block *block) {
    uint64_t memory;
    int code = take_made(area, block, &memory);
    if (code != GPS_OK)
        return code;
    code = copy_into(area, block, memory);
    if (code == GPS_OK)
        code = gps_block_replace(area, block, memory, true);
    if (code != GPS_OK)
        block->made = memory;
    return code;
}

void gps_block_drop(const struct gps_area *area, struct gps_block *block) {
    gps_block_unmake(block);
    if (block->state == GPS_BLOCK_UNBACKED)
        return;
    gps_ops->unmap(block_address(area, block), block->size);
    gps_ops->block_release(block->memory);
    gps_block_set_state(block, GPS_BLOCK_UNBACKED);
}
