#include "hash_table.h"

#include <errno.h>

#include "util/forgotten.h"
#include "util/lock.h"

enum { SMALLEST = 6, LARGEST = 16 /* bits of a size; beyond it, memory is mapped for itself */ };
enum { CHUNK = 1 << LARGEST };

static struct {
    GPS_LOCK(GPS_RANK_TABLE_MEMORY) lock;
    void *free[LARGEST + 1]; /* by size, linked by their first word */
} state;
GPS_FORGOTTEN(state);

static void *table_memory_map(size_t size) {
    const int error = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = error; /* the program's: its call succeeds all the same */
    return memory == MAP_FAILED ? NULL : memory;
}

static unsigned bits_of(size_t size) {
    unsigned bits = SMALLEST;
    while (((size_t)1 << bits) < size)
        bits++;
    return bits;
}

static void table_piece_put(unsigned bits, void *piece) {
    *(void **)piece = state.free[bits];
    state.free[bits] = piece;
}

/* Cuts a chunk into pieces of this size. The caller has the lock. */
static void refill(unsigned bits) {
    char *chunk = table_memory_map(CHUNK);
    for (size_t at = 0; chunk && at < CHUNK; at += (size_t)1 << bits)
        table_piece_put(bits, chunk + at);
}

void *gps_table_allocate(size_t size) {
    const unsigned bits = bits_of(size);
    if (bits > LARGEST)
        return table_memory_map(size);
    GPS_LOCKED(&state.lock);
    if (!state.free[bits])
        refill(bits);
    void *piece = state.free[bits];
    if (piece)
        state.free[bits] = *(void **)piece;
    return piece;
}

void gps_table_free(void *memory, size_t size) {
    const unsigned bits = bits_of(size);
    if (bits > LARGEST) {
        munmap(memory, size);
        return;
    }
    GPS_LOCKED(&state.lock);
    table_piece_put(bits, memory);
}
