/* One copy or fill of a range, in one of the ways in which the cuMemcpy* and cuMemset* calls make
 * it. */
#pragma once

#include "copy.h"
#include "stream.h"

/* How a call is made: in which stream, and whether it waits. */
struct manner {
    CUstream named;
    bool per_thread, async;
};

#define WAITING      ((struct manner){NULL, false, false})
#define WAITING_PTDS ((struct manner){NULL, true, false})
#define QUEUED       ((struct manner){stream, false, true})
#define QUEUED_PTSZ  ((struct manner){stream, true, true})

/* One side of a copy. */
struct end {
    uint64_t address;
    enum side side;
};

/* Nothing is done unless all of it may be. */
CUresult transfer_copy(struct end to, struct end from, uint64_t size, struct manner manner);
CUresult transfer_fill(uint64_t to, uint64_t count, uint32_t value, unsigned width,
                       struct manner manner);
/* The same as a node of a graph, which does it again and again: its work. */
CUresult transfer_copy_node(struct end to, struct end from, uint64_t size, const struct work **work,
                            void **argument);
CUresult transfer_fill_node(uint64_t to, uint64_t count, uint32_t value, unsigned width,
                            const struct work **work, void **argument);
/* A word of 4 or 8 bytes: memory must be there; whether it may be written its turn tells: 719. */
CUresult transfer_word(uint64_t to, uint64_t word, uint64_t size, struct manner manner);
/* What transfer_copy and transfer_fill would say, without doing it. */
CUresult transfer_check(struct end to, struct end from, uint64_t size);
CUresult transfer_check_fill(uint64_t to, uint64_t count, unsigned width);
