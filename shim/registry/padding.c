/* padding.c - a list by address; see padding.h. */
#include "padding.h"

#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct padding {
    uint64_t pointer, begins, ends; /* its memory, and where it lies */
    uint32_t era;
};

struct gps_padding_span gps_padding_span;
GPS_FORGOTTEN(gps_padding_span);
static struct {
    GPS_LOCK(GPS_RANK_PADDINGS) lock;
    struct padding *list;
    size_t count, capacity;
} state;
GPS_FORGOTTEN(state);

/* How many begin at the address or before it. */
static size_t up_to(uint64_t address) {
    size_t low = 0, high = state.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (state.list[middle].begins <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop(size_t at) {
    state.count--;
    memmove(&state.list[at], &state.list[at + 1], (state.count - at) * sizeof(*state.list));
}

/* Those that it overlaps were of memory that has gone. */
static bool make_room(const struct padding *one) {
    size_t at = up_to(one->ends - 1);
    while (at > 0 && state.list[at - 1].ends > one->pointer)
        drop(--at);
    if (state.count == state.capacity) {
        const size_t capacity = state.capacity ? 2 * state.capacity : 64;
        struct padding *larger = realloc(state.list, capacity * sizeof(*larger));
        if (!larger)
            return false;
        state.list = larger;
        state.capacity = capacity;
    }
    return true;
}

static void widen(const struct padding *one) {
    struct gps_padding_span *const span = &gps_padding_span;
    if (one->begins < span->lowest || !span->highest)
        __atomic_store_n(&span->lowest, one->begins, __ATOMIC_RELAXED);
    if (one->ends > span->highest)
        __atomic_store_n(&span->highest, one->ends, __ATOMIC_RELAXED);
}

void gps_padding_add(uint64_t pointer, uint64_t size, uint64_t extent) {
    const struct padding one = {pointer, pointer + size, pointer + extent, gps_registry_era()};
    if (one.begins == one.ends)
        return;
    GPS_LOCKED(&state.lock);
    if (!make_room(&one))
        return;
    const size_t at = up_to(one.begins);
    memmove(&state.list[at + 1], &state.list[at], (state.count - at) * sizeof(*state.list));
    state.list[at] = one;
    state.count++;
    widen(&one);
}

void gps_padding_remove(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&state.lock);
    const size_t at = up_to(pointer + size);
    if (at > 0 && state.list[at - 1].pointer == pointer)
        drop(at - 1);
}

static bool find(uint64_t address, struct padding *found) {
    GPS_LOCKED(&state.lock);
    const size_t at = up_to(address);
    if (at > 0)
        *found = state.list[at - 1];
    return at > 0 && address < found->ends;
}

/* Memory goes with its context, too. */
bool gps_padding_has(uint64_t address) {
    struct padding padding;
    struct gps_alloc alloc;
    return find(address, &padding) && gps_registry_find(padding.pointer, &alloc) &&
           alloc.era == padding.era && alloc.kind != GPS_ALLOC_PLAIN;
}
