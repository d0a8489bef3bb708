/*
 * The memory of one simulated card: a sparse file from which ranges of whole blocks are taken.
 * Its address space is larger than its size, so that fragmentation, which paging hides on a real
 * card, does not show here either; `used` alone decides when memory is out.
 */
#pragma once

#include <stdint.h>

struct memory {
    int fd;
    uint64_t total, used; /* bytes */
    uint64_t slots;       /* blocks of address space */
    uint64_t *taken;      /* one bit a block */
};

/* 0 or -errno. */
int memory_create(struct memory *memory, uint64_t total);
/* 0 with *offset set, or -ENOMEM. `size` is a multiple of SIM_BLOCK. */
int memory_take(struct memory *memory, uint64_t size, uint64_t *offset);
/* A copy of a range that takes nothing of the card: a checkpoint has it in main memory. */
int memory_copy_away(struct memory *memory, uint64_t from, uint64_t size, uint64_t *offset);
/* Gives the range back and its pages to the system. */
void memory_give(struct memory *memory, uint64_t offset, uint64_t size);
