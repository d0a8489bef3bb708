#include "freed_history.h"

#include <stdatomic.h>

#include "graph_books.h"
#include "registry.h"
#include "util/forgotten.h"

enum { PLACES = 4096, WRITING = 1 /* not an address: those are even */ };

static struct place {
    _Atomic uint64_t address;
    _Atomic uint64_t traces; /* born, ended << 32, WITH_CONTEXT */
    _Atomic uint64_t context, size;
    _Atomic int device;
} places[GPS_FREED_KINDS][PLACES];
GPS_FORGOTTEN(places);

#define WITH_CONTEXT (UINT64_C(1) << 63)

static struct place *freed_place(enum gps_freed_kind kind, uint64_t address) {
    const uint64_t mixed = (address >> 8 ^ address << 56) * 0x9e3779b97f4a7c15u;
    return &places[kind][mixed >> 52];
}
_Static_assert(PLACES == 1 << 12, "12 bits of the hash");

static inline void freed_note(enum gps_freed_kind kind, uint64_t address, struct gps_freed freed) {
    struct place *place = freed_place(kind, address);
    gps_graph_memory_ends(kind, address, &freed);
    if (atomic_exchange_explicit(&place->address, WRITING, memory_order_acq_rel) == WRITING)
        return; /* another thread writes the place; one of the two is lost */
    atomic_store_explicit(&place->traces,
                          freed.born | (uint64_t)freed.ended << 32 |
                              (freed.with_context ? WITH_CONTEXT : 0),
                          memory_order_relaxed);
    atomic_store_explicit(&place->context, freed.context, memory_order_relaxed);
    atomic_store_explicit(&place->device, freed.device, memory_order_relaxed);
    atomic_store_explicit(&place->size, freed.size, memory_order_relaxed);
    atomic_store_explicit(&place->address, address, memory_order_release);
}

void gps_freed_note(enum gps_freed_kind kind, uint64_t address, struct gps_freed freed) {
    freed_note(kind, address, freed);
}

void gps_freed_note_allocation(const struct gps_alloc *alloc, uint32_t ended) {
    freed_note(GPS_FREED_MEMORY, alloc->pointer,
               (struct gps_freed){.born = alloc->trace,
                                  .ended = ended,
                                  .context = alloc->context,
                                  .size = alloc->size,
                                  .device = alloc->device});
}

void gps_freed_forget(enum gps_freed_kind kind, uint64_t address) {
    _Atomic uint64_t *place = &freed_place(kind, address)->address;
    uint64_t expected = address;
    if (atomic_load_explicit(place, memory_order_relaxed) == address)
        atomic_compare_exchange_strong(place, &expected, 0);
}

static bool read(const struct place *place, uint64_t address, struct gps_freed *freed) {
    if (atomic_load_explicit(&place->address, memory_order_acquire) != address)
        return false;
    const uint64_t traces = atomic_load_explicit(&place->traces, memory_order_acquire);
    *freed =
        (struct gps_freed){.born = (uint32_t)traces,
                           .ended = (uint32_t)(traces >> 32 & INT32_MAX),
                           .context = atomic_load_explicit(&place->context, memory_order_acquire),
                           .device = atomic_load_explicit(&place->device, memory_order_acquire),
                           .size = atomic_load_explicit(&place->size, memory_order_acquire),
                           .with_context = (traces & WITH_CONTEXT) != 0};
    return atomic_load_explicit(&place->address, memory_order_acquire) == address;
}

bool gps_freed_find(enum gps_freed_kind kind, uint64_t address, struct gps_freed *freed) {
    return read(freed_place(kind, address), address, freed);
}

bool gps_freed_around(enum gps_freed_kind kind, uint64_t address, uint64_t *base,
                      struct gps_freed *freed) {
    struct gps_freed one;
    unsigned count = 0;
    for (const struct place *place = places[kind]; place < places[kind] + PLACES; place++) {
        const uint64_t from = atomic_load_explicit(&place->address, memory_order_acquire);
        if (from <= WRITING || from > address || !read(place, from, &one) ||
            address - from >= one.size)
            continue;
        *base = from;
        *freed = one;
        count++;
    }
    return count == 1;
}
