/* Moving bytes between host and cards; see copy.h. */
#include "copy.h"

#include "block.h"
#include "host.h"
#include "mapping.h"
#include "space.h"
#include "state.h"
#include "touch.h"

/* Whether the card may do there what it asks for: in one allocation, or in adjacent mappings. */
static bool is_open(uint64_t address, uint64_t size, struct asker asker) {
    struct span span;
    while (block_find(address, &span) && mapping_allows(span.block, asker.card, asker.writes)) {
        uint64_t part = span.size - (address - span.base);
        if (size <= part)
            return true;
        if (!span.block->mapping)
            return false;
        address += part;
        size -= part;
    }
    return false;
}

static CUresult locate(uint64_t address, uint64_t size, struct asker asker, struct place *place) {
    struct span span;
    *place = (struct place){.address = address, .asker = asker};
    if (asker.side != SIDE_HOST && block_find(address, &span))
        return is_open(address, size, asker) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    const struct host_range *range = host_find(address);
    REFUSE(range && size > range->size - (address - range->base), CUDA_ERROR_INVALID_VALUE);
    place->host = true;
    place->pageable = !range;
    /* An address that only a card could have is no host memory either. */
    REFUSE(!range && (asker.side == SIDE_DEVICE || space_owns(address)), CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult copy_locate(uint64_t address, uint64_t size, struct asker asker, struct place *place) {
    STATE_LOCKED();
    return locate(address, size, asker, place);
}

static struct touch part_of(const struct place *place, uint64_t done, uint64_t size) {
    return (struct touch){.address = place->address + done,
                          .size = size - done,
                          .card = place->asker.card,
                          .writes = place->asker.writes,
                          .pageable = place->pageable};
}

/* A part at a time, so that a kill comes in the middle. */
static void take_the_bus(uint64_t size) {
    const char *rate = getenv("GPUSHARE_SIM_BUS");
    const uint64_t mib = rate ? strtoull(rate, NULL, 10) : 0;
    if (mib)
        usleep((useconds_t)(size * 1000000 / (mib << 20)));
}

CUresult copy_bytes(const struct place *to, const struct place *from, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        struct touch sides[] = {part_of(to, done, size), part_of(from, done, size)};
        REFUSE(!touch_begin(sides, 2), CUDA_ERROR_LAUNCH_FAILED);
        memmove(sides[0].at, sides[1].at, sides[0].size);
        touch_end(sides, 2);
        done += sides[0].size;
        if (to->host != from->host)
            take_the_bus(sides[0].size);
    }
    return CUDA_SUCCESS;
}

static void write_pattern(unsigned char *at, uint64_t size, uint32_t value, unsigned width) {
    if (width == 1)
        memset(at, (int)value, size);
    else
        for (uint64_t i = 0; i < size; i += width)
            memcpy(at + i, &value, width);
}

CUresult copy_pattern(const struct place *to, uint64_t size, uint32_t value, unsigned width) {
    for (uint64_t done = 0; done < size;) {
        struct touch part = part_of(to, done, size);
        REFUSE(!touch_begin(&part, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
        write_pattern(part.at, part.size, value, width);
        touch_end(&part, 1);
        done += part.size;
    }
    return CUDA_SUCCESS;
}
