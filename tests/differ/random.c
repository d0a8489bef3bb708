/* random.c - splitmix64, and bytes made by it. */
#include "random.h"

static uint64_t mix(uint64_t value) {
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

struct numbers numbers_from(uint64_t seed, uint64_t step, uint64_t replica) {
    return (struct numbers){.state = mix(seed * 1000003 + step) + mix(replica + 1)};
}

static uint64_t next(struct numbers *numbers) {
    return mix(numbers->state += UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t number_below(struct numbers *numbers, uint64_t end) {
    return end ? next(numbers) % end : 0;
}

bool one_of(struct numbers *numbers, unsigned many) {
    return number_below(numbers, many) == 0;
}

void numbers_fill(void *to, size_t size, uint64_t seed) {
    unsigned char *bytes = to;
    uint64_t word = mix(seed);
    for (size_t at = 0; at < size; at += sizeof(word)) {
        word = word * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(bytes + at, &word, size - at < sizeof(word) ? size - at : sizeof(word));
    }
}

uint64_t bytes_hash(const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    uint64_t hash = size;
    for (size_t at = 0; at < size; at += sizeof(hash)) {
        uint64_t word = 0;
        memcpy(&word, from + at, size - at < sizeof(word) ? size - at : sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 32;
    }
    return hash;
}
