/* Moving bytes between host and cards; see copy.h. */
#include "copy.h"

#include "block.h"
#include "host.h"
#include "link.h"
#include "mapping.h"
#include "space.h"
#include "state.h"

static CUresult locate(uint64_t address, uint64_t size, struct asker asker, struct place *place) {
    struct span span;
    *place = (struct place){.address = address};
    if (asker.side != SIDE_HOST && block_find(address, &span)) {
        if (size > span.size - (address - span.base) ||
            !mapping_allows(span.block, asker.card, asker.writes))
            return CUDA_ERROR_INVALID_VALUE;
        place->device = true;
        place->card = span.block->card;
        place->offset = span.block->offset + (address - span.block->address);
        return CUDA_SUCCESS;
    }
    const struct host_range *range = host_find(address);
    if (range && size > range->size - (address - range->base))
        return CUDA_ERROR_INVALID_VALUE;
    place->pageable = !range;
    /* An address that only a card could have is no host memory either. */
    if (!range && (asker.side == SIDE_DEVICE || space_owns(address)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult copy_locate(uint64_t address, uint64_t size, struct asker asker, struct place *place) {
    state_lock();
    CUresult result = locate(address, size, asker, place);
    state_unlock();
    return result;
}

/* Where the bytes `done` into a place can be reached, and how many of the `size` there. */
static unsigned char *reach(const struct place *place, uint64_t done, uint64_t *size) {
    if (place->device)
        return link_reach(place->card, place->offset + done, size);
    return (unsigned char *)(uintptr_t)(place->address + done);
}

void copy_bytes(const struct place *to, const struct place *from, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done;
        reach(to, done, &part);
        unsigned char *source = reach(from, done, &part);
        unsigned char *target = reach(to, done, &part);
        if (!source || !target)
            return;
        memmove(target, source, part);
        done += part;
    }
}

void copy_pattern(const struct place *to, uint64_t size, uint32_t value, unsigned width) {
    for (uint64_t done = 0; done < size;) {
        uint64_t part = size - done;
        unsigned char *target = reach(to, done, &part);
        if (!target)
            return;
        if (width == 1)
            memset(target, (int)value, part);
        else
            for (uint64_t i = 0; i < part; i += width)
                memcpy(target + i, &value, width);
        done += part;
    }
}
