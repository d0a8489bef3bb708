/* Moving bytes. A range is checked against what this process holds when a copy is asked for, and
 * again, part by part, when it runs. */
#pragma once

#include "abi.h"

/* What a side of a copy must be. */
enum side { SIDE_ANY, SIDE_DEVICE, SIDE_HOST };

/* Who asks: the card that copies, which VMM memory may be closed to, and what it will do there. */
struct asker {
    uint32_t card;
    bool writes;
    enum side side;
};

struct place {
    uint64_t address;
    struct asker asker;
    bool host;
    bool pageable; /* host memory that the driver does not know */
};

/* 1 if the range is not wholly inside one allocation, or mappings one behind the other, or not open
 * to the card that asks. */
CUresult copy_locate(uint64_t address, uint64_t size, struct asker asker, struct place *place);
/* 719 from where on a range is not as it was located any more: what came before is done. */
CUresult copy_bytes(const struct place *to, const struct place *from, uint64_t size);
/* Fills `size` bytes with a pattern of 1, 2 or 4 bytes; a fill's code is 700. */
CUresult copy_pattern(const struct place *to, uint64_t size, uint32_t value, unsigned width);
