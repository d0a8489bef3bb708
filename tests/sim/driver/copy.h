/* Moving bytes. A range is checked against what this process holds when a copy is asked for. */
#ifndef SIM_COPY_H
#define SIM_COPY_H

#include "abi.h"

/* What a side of a copy must be. */
enum side { SIDE_ANY, SIDE_DEVICE, SIDE_HOST };

struct place {
    uint64_t address; /* of host memory */
    uint64_t offset;  /* of a card's memory */
    uint32_t card;
    bool device;
    bool pageable; /* host memory that the driver does not know */
};

/* Who asks: the card that copies, which VMM memory may be closed to, and what it will do there. */
struct asker {
    uint32_t card;
    bool writes;
    enum side side;
};

/* 1 if the range is not wholly inside one allocation, or not open to the card that asks. */
CUresult copy_locate(uint64_t address, uint64_t size, struct asker asker, struct place *place);
void copy_bytes(const struct place *to, const struct place *from, uint64_t size);
/* Fills `size` bytes with a pattern of 1, 2 or 4 bytes. */
void copy_pattern(const struct place *to, uint64_t size, uint32_t value, unsigned width);

#endif
