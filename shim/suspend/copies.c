#include "copies.h"

#include <stddef.h>

#include "util/forgotten.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

static struct {
    struct gps_table table;
    struct gps_slab slab;
    uint64_t bytes;
} state;
GPS_FORGOTTEN(state);
_Static_assert(offsetof(struct gps_copy, entry) == 0, "the first");

static uint64_t copy_key(const struct gps_hash *hash) {
    return hash->low | 1;
}

static bool copy_has(const struct gps_copy *copy, const struct gps_hash *hash, uint64_t size) {
    return !copy->torn && copy->size == size && memcmp(&copy->hash, hash, sizeof(*hash)) == 0;
}

static struct gps_copy *copy_find(const struct gps_hash *hash, uint64_t size) {
    struct gps_entry *entry = gps_table_find(&state.table, copy_key(hash));
    while (entry && !copy_has((struct gps_copy *)entry, hash, size))
        entry = gps_entry_find(entry);
    return (struct gps_copy *)entry;
}

struct gps_copy *gps_copies_get(const struct gps_hash *hash, uint64_t size) {
    struct gps_copy *copy = copy_find(hash, size);
    if (!copy) {
        copy = gps_table_make(&state.table, &state.slab, sizeof(*copy), copy_key(hash));
        if (!copy)
            return NULL;
        copy->hash = *hash;
        copy->size = size;
        copy->bytes = NULL;
        copy->users = 0;
        copy->torn = false;
    }
    copy->users++;
    return copy;
}

void gps_copies_put(struct gps_copy *copy) {
    copy->users--;
}

/* --- the copies' memory --- */

static bool lacks_memory(const struct gps_copy *copy) {
    return copy->users && !copy->bytes;
}

/* Pages that were written before are quicker than fresh ones. */
static void recycle(void) {
    GPS_TABLE_EACH(gps_copy, wanting, &state.table) {
        struct gps_copy *unused =
            lacks_memory(wanting)
                ? GPS_TABLE_SEEK(gps_copy, &state.table,
                                 !one->users && one->bytes && one->size == wanting->size)
                : NULL;
        if (!unused)
            continue;
        wanting->bytes = unused->bytes;
        unused->bytes = NULL;
    }
}

static uint64_t wanted(void) {
    uint64_t sum = 0;
    GPS_TABLE_EACH(gps_copy, one, &state.table)
    sum += lacks_memory(one) ? one->size : 0;
    return sum;
}

/* Maps memory of a size that begins with a huge page. */
static char *copies_map(uint64_t size) {
    const uint64_t all = size + HUGE_PAGE;
    char *mapping =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    const uint64_t before = -(uintptr_t)mapping % HUGE_PAGE;
    if (before)
        munmap(mapping, before);
    munmap(mapping + before + size, HUGE_PAGE - before);
    madvise(mapping + before, size, MADV_HUGEPAGE); /* a kernel without them has small pages */
    madvise(mapping + before, size, MADV_DONTDUMP);
    if (madvise(mapping + before, size, MADV_DONTFORK) == 0)
        return mapping + before;
    munmap(mapping + before, size);
    return NULL;
}

void gps_copies_drop_unused(void) {
    GPS_TABLE_EACH(gps_copy, one, &state.table)
    if (!one->users) {
        if (one->bytes) {
            munmap(one->bytes, one->size);
            state.bytes -= one->size;
        }
        gps_table_drop(&state.table, &state.slab, &one->entry);
    }
}

bool gps_copies_make_room(void) {
    recycle();
    gps_copies_drop_unused();
    const uint64_t size = wanted();
    char *bytes = size ? copies_map(size) : NULL;
    if (size && !bytes)
        return false;
    GPS_TABLE_EACH(gps_copy, one, &state.table)
    if (lacks_memory(one)) {
        one->bytes = bytes;
        bytes += one->size;
    }
    state.bytes += size;
    return true;
}

uint64_t gps_copies_bytes(void) {
    return state.bytes;
}
