#include "eviction.h"

#include "block.h"
#include "driver/driver_ops.h"
#include "shared_block.h"
#include "vmm/mapping.h"

static bool eviction_block_is_merged(const struct gps_block *block) {
    return gps_block_is_merged(block) || block->state == GPS_BLOCK_SPECULATIVE;
}

/* Whether the block's memory is the process's own to evict. The driver keeps memory that the keeper
 * may have by an unanswered offer, and memory of cuMemCreate, whose handles the program has. */
static bool eviction_block_is_own(const struct gps_area *area, const struct gps_block *block) {
    return !area->created && !area->freed &&
           (block->state == GPS_BLOCK_PRIVATE || block->state == GPS_BLOCK_FROZEN);
}

/* --- finding, with the lock --- */

/* The first block, own or merged, that begins at or behind an address. NULL: there is no more. */
static struct gps_block *eviction_block_from(uint64_t from, bool own, struct gps_area **found) {
    for (struct gps_area *area = gps_area_from(from); area; area = gps_area_next(area)) {
        unsigned i = 0, end;
        if (from > area->pointer)
            gps_area_blocks(area, from, 1, &i, &end);
        for (; i < area->count; i++) {
            struct gps_block *block = &area->blocks[i];
            if (area->pointer + block->at < from)
                continue;
            if (own ? eviction_block_is_own(area, block) : eviction_block_is_merged(block)) {
                *found = area;
                return block;
            }
        }
    }
    return NULL;
}

/* The block that begins at the address. */
static struct gps_block *block_at(uint64_t address, bool own, struct gps_area **area) {
    struct gps_block *block = eviction_block_from(address, own, area);
    return block && (*area)->pointer + block->at == address ? block : NULL;
}

/* --- merged blocks --- */

bool gps_eviction_next(struct gps_eviction *next) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    const struct gps_block *block = eviction_block_from(next->address + 1, false, &area);
    if (block)
        *next = (struct gps_eviction){area->pointer + block->at, block->size, block->id,
                                      block->evicted, block->state == GPS_BLOCK_PROVIDED};
    return block;
}

int gps_eviction_enter(uint64_t address) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    return block_at(address, false, &area) ? gps_ops->enter(area->context) : GPS_INVALID_VALUE;
}

uint64_t gps_eviction_own_bytes(void) {
    uint64_t bytes = 0;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        for (unsigned i = 0; i < area->count; i++)
            if ((gps_block_is_own(&area->blocks[i]) &&
                 !eviction_block_is_merged(&area->blocks[i])) ||
                area->blocks[i].made)
                bytes += area->blocks[i].size;
    return bytes;
}

int gps_eviction_descriptor(const struct gps_eviction *of, int *descriptor) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    const struct gps_block *block = block_at(of->address, false, &area);
    return block && block->state == GPS_BLOCK_PROVIDED && gps_id_equal(&block->id, &of->id)
               ? gps_ops->block_export(block->memory, descriptor)
               : GPS_INVALID_VALUE;
}

/* A shared block of another process's. The caller enters its context. */
static struct gps_block *find_shared(const struct gps_eviction *of, struct gps_area **area) {
    struct gps_block *block = block_at(of->address, false, area);
    const bool same = block && block->state == GPS_BLOCK_SHARED && !block->evicted &&
                      gps_id_equal(&block->id, &of->id) && gps_area_is_usable(*area);
    return same ? block : NULL;
}

int gps_eviction_copy(const struct gps_eviction *of, uint64_t *memory) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    const struct gps_block *block = find_shared(of, &area);
    int code = block ? gps_area_enter(area) : GPS_INVALID_VALUE;
    if (code != GPS_OK)
        return code;
    code = gps_block_copy(area, block, memory);
    gps_ops->leave();
    return code;
}

int gps_eviction_replace(const struct gps_eviction *of, uint64_t memory) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = find_shared(of, &area);
    int code = block ? gps_area_enter(area) : GPS_INVALID_VALUE;
    if (code != GPS_OK)
        return code;
    code = gps_block_replace(area, block, memory, false);
    if (code == GPS_OK)
        gps_block_set_state(block, GPS_BLOCK_PROVIDED);
    gps_ops->leave();
    return code;
}

int gps_eviction_release(uint64_t address) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, false, &area);
    if (!block)
        return GPS_INVALID_VALUE;
    const int code = gps_ops->unmap(address, block->size);
    if (code != GPS_OK)
        return code;
    block->evicted = true;
    return gps_ops->block_release(block->memory);
}

static int eviction_block_map(const struct gps_area *area, const struct gps_block *block,
                              uint64_t memory) {
    int code = gps_ops->enter(area->context);
    if (code != GPS_OK)
        return code;
    code = gps_mapping_map(area->pointer + block->at, block->size, memory, area->device, false);
    gps_ops->leave();
    return code;
}

/* Memory that was made here is the keeper's now: the block gives no descriptor any more. */
static void eviction_block_take(const struct gps_area *area, struct gps_block *block,
                                uint64_t memory) {
    block->memory = memory;
    block->evicted = false;
    if (block->state != GPS_BLOCK_PROVIDED)
        return;
    gps_block_set_state(block, GPS_BLOCK_SHARED);
    gps_shared_commit(&block->id, block->slot,
                      gps_shared_mark(area->uuid, block->size) | GPS_SHARED_MADE,
                      area->pointer + block->at);
}

int gps_eviction_restore(uint64_t address, int descriptor) {
    struct gps_area *area;
    uint64_t memory;
    int code = gps_ops->block_import(descriptor, &memory);
    if (code != GPS_OK)
        return code;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, false, &area);
    code = block ? eviction_block_map(area, block, memory) : GPS_INVALID_VALUE;
    if (code == GPS_OK)
        eviction_block_take(area, block, memory);
    else
        gps_ops->block_release(memory);
    return code;
}

/* --- new memory in place of evicted memory --- */

static int make_entered(const struct gps_area *area, struct gps_block *block) {
    uint64_t memory;
    int code = gps_ops->block_create(area->device, block->size, &memory);
    if (code != GPS_OK)
        return code;
    code = gps_block_map(area, area->pointer + block->at, block->size, memory, true);
    if (code == GPS_OK)
        block->memory = memory;
    else
        gps_ops->block_release(memory);
    return code;
}

static int eviction_block_make(const struct gps_area *area, struct gps_block *block) {
    int code = gps_ops->enter(area->context);
    if (code != GPS_OK)
        return code;
    code = make_entered(area, block);
    gps_ops->leave();
    return code;
}

int gps_eviction_make(uint64_t address) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, false, &area);
    return block && block->evicted ? eviction_block_make(area, block) : GPS_INVALID_VALUE;
}

int gps_eviction_seal(uint64_t address, int *descriptor) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, false, &area);
    int code = block ? gps_ops->enter(area->context) : GPS_INVALID_VALUE;
    if (code != GPS_OK)
        return code;
    code = gps_block_seal(area, block);
    if (code == GPS_OK)
        code = gps_ops->block_export(block->memory, descriptor);
    gps_ops->leave();
    return code;
}

void gps_eviction_made(uint64_t address, bool taken) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, false, &area);
    block->evicted = !taken;
    if (!taken) {
        gps_ops->unmap(address, block->size);
        gps_ops->block_release(block->memory);
    } else if (block->state == GPS_BLOCK_SHARED) {
        gps_block_set_state(block, GPS_BLOCK_PROVIDED);
    }
}

/* --- blocks of this process's own --- */

bool gps_eviction_next_own(struct gps_eviction_own *next) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    const struct gps_block *block = eviction_block_from(next->address + 1, true, &area);
    if (block)
        *next = (struct gps_eviction_own){area->pointer + block->at, block->size, area->context,
                                          block->evicted};
    return block;
}

/* A frozen block becomes private, so that the merger looks at it anew afterwards. */
int gps_eviction_release_own(uint64_t address) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, true, &area);
    const int code = block ? gps_ops->unmap(address, block->size) : GPS_INVALID_VALUE;
    if (code != GPS_OK)
        return code;
    if (block->state == GPS_BLOCK_FROZEN)
        gps_block_set_state(block, GPS_BLOCK_PRIVATE);
    block->evicted = true;
    return gps_ops->block_release(block->memory);
}

int gps_eviction_make_own(uint64_t address) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_at(address, true, &area);
    const int code = block ? eviction_block_make(area, block) : GPS_INVALID_VALUE;
    if (code == GPS_OK)
        block->evicted = false;
    return code;
}
