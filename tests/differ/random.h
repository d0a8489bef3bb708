/*
 * random.h - numbers and bytes that follow from a seed: for differ-program and soak-right.
 */
#pragma once

#include "../common/system_headers.h"

/* A sequence of numbers. Each step has one of its own, so a step that is left out changes no other.
 */
struct numbers {
    uint64_t state;
};
struct numbers numbers_from(uint64_t seed, uint64_t step, uint64_t replica);
uint64_t number_below(struct numbers *numbers, uint64_t end);
bool one_of(struct numbers *numbers, unsigned many); /* true once in so many */
/* Bytes that follow from the seed and their place. */
void numbers_fill(void *to, size_t size, uint64_t seed);
uint64_t bytes_hash(const void *bytes, size_t size);
