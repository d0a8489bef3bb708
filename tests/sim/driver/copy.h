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

/* 1 if the range is not wholly inside one allocation. */
CUresult copy_locate(uint64_t address, uint64_t size, enum side side, struct place *place);
void copy_bytes(const struct place *to, const struct place *from, uint64_t size);
/* Fills `size` bytes with a pattern of 1, 2 or 4 bytes. */
void copy_pattern(const struct place *to, uint64_t size, uint32_t value, unsigned width);

#endif
