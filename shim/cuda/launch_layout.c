/*
 * A slot is one word, a handle and where its layout begins, so it is read and written without a
 * lock. Layouts never change or move, so reading one takes no lock either. Kernels with the same
 * parameters have the same layout, so a program that loads modules again and again fills no memory.
 */
#include "launch_layout.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/scope.h"
#include "util/forgotten.h"

enum { SLOTS_BITS = 11, SLOTS = 1 << SLOTS_BITS, PROBES = 4, POOL = 8192, AT_BITS = 16 };

static struct kept {
    _Atomic uint64_t slots[SLOTS]; /* a handle, and in the low bits the first of its parameters */
    struct gps_parameter pool[POOL];
    unsigned used; /* of the pool */
} * _Atomic kept;
GPS_FORGOTTEN(kept);

/* A thread is adding a layout. Another one keeps none then, and asks the driver next time. */
static _Atomic bool adding;
GPS_FORGOTTEN(adding);

static _Atomic uint64_t *layout_slot(struct kept *all, uint64_t handle, unsigned probe) {
    const uint64_t hash = handle * 0x9e3779b97f4a7c15u >> (64 - SLOTS_BITS);
    return &all->slots[(hash + probe) % SLOTS];
}

static const struct gps_parameter *layout_find(struct kept *all, uint64_t handle) {
    for (unsigned i = 0; i < PROBES; i++) {
        const uint64_t slot =
            atomic_load_explicit(layout_slot(all, handle, i), memory_order_acquire);
        if (slot >> AT_BITS == handle)
            return &all->pool[slot % (1 << AT_BITS)];
    }
    return NULL;
}

/* --- layouts that are not known yet --- */

/* *ends: the kernel has no parameter of this number or above. */
static bool parameter_ask(CUfunction f, size_t index, size_t *offset, size_t *size, bool *ends) {
    CUresult function = CUDA_ERROR_NOT_FOUND, kernel = CUDA_ERROR_NOT_FOUND;
    if (gps_calls.cuFuncGetParamInfo)
        function = gps_calls.cuFuncGetParamInfo(f, index, offset, size);
    if (function != CUDA_SUCCESS && gps_calls.cuKernelGetParamInfo)
        kernel = gps_calls.cuKernelGetParamInfo((CUkernel)f, index, offset, size);
    const bool has = function == CUDA_SUCCESS || kernel == CUDA_SUCCESS;
    *ends = !has && (function == CUDA_ERROR_INVALID_VALUE || kernel == CUDA_ERROR_INVALID_VALUE);
    return has;
}

/* Returns the number of parameters in the room; *whole: there are no more. */
static unsigned ask_all(CUfunction f, struct gps_layout_room *room, bool *whole) {
    unsigned count = 0;
    size_t offset, size;
    for (size_t i = 0; count < GPS_PARAMETERS && parameter_ask(f, i, &offset, &size, whole); i++) {
        if (offset + size > UINT16_MAX || i >= UINT16_MAX)
            break;
        if (size >= sizeof(uint64_t))
            room->list[count++] =
                (struct gps_parameter){(uint16_t)(i + 1), (uint16_t)offset, (uint16_t)size};
    }
    room->list[count].number = 0;
    return count;
}

/* Returns the list's place in the pool; POOL: there is no room. */
static unsigned layout_place(struct kept *all, const struct gps_parameter *list, unsigned count) {
    unsigned at = 0;
    while (at + count <= all->used && memcmp(&all->pool[at], list, count * sizeof(*list)) != 0)
        at++;
    if (at + count <= all->used)
        return at;
    if (all->used + count > POOL)
        return POOL;
    at = all->used;
    memcpy(&all->pool[at], list, count * sizeof(*list));
    all->used += count;
    return at;
}

/* Puts the layout into a free slot, or in place of another one. */
static void layout_put(struct kept *all, uint64_t handle, unsigned at) {
    unsigned probe = PROBES - 1;
    while (probe && *layout_slot(all, handle, probe))
        probe--;
    atomic_store_explicit(layout_slot(all, handle, probe), handle << AT_BITS | at,
                          memory_order_release);
}

static struct kept *layouts_make(void) {
    void *const made =
        mmap(NULL, sizeof(struct kept), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    kept = made == MAP_FAILED ? NULL : made;
    return kept;
}

static void layout_keep(uint64_t handle, const struct gps_layout_room *room, unsigned count) {
    GPS_SCOPE();
    if (handle >> (64 - AT_BITS) || atomic_exchange(&adding, true))
        return;
    struct kept *const all = kept ? kept : layouts_make();
    const unsigned at = all ? layout_place(all, room->list, count + 1) : POOL;
    if (at < POOL)
        layout_put(all, handle, at);
    adding = false;
}

const struct gps_parameter *gps_launch_layout(CUfunction f, struct gps_layout_room *room) {
    struct kept *const all = atomic_load_explicit(&kept, memory_order_acquire);
    const struct gps_parameter *const known = all ? layout_find(all, (uintptr_t)f) : NULL;
    bool whole = false;
    if (known)
        return known;
    const unsigned count = ask_all(f, room, &whole);
    if (whole)
        layout_keep((uintptr_t)f, room, count);
    return room->list;
}

void gps_launch_layouts_forget(void) {
    struct kept *const all = kept;
    for (unsigned i = 0; all && i < SLOTS; i++)
        atomic_store_explicit(&all->slots[i], 0, memory_order_relaxed);
}
