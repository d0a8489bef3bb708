#include "pool_books.h"

#include <stdatomic.h>
#include <string.h>

#include "hash_table.h"
#include "process/references.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct pool {
    struct gps_entry entry; /* by its handle */
    struct gps_pool is;
};

struct pointer {
    struct gps_entry entry; /* by its address */
    struct gps_pool_pointer is;
};

static struct {
    GPS_LOCK(GPS_RANK_POOL_BOOKS) lock;
    struct gps_table pools, pointers;
    struct gps_slab pool_slab, pointer_slab;
    uint64_t serial;
    _Atomic bool any; /* there ever was a pointer */
} books;
GPS_FORGOTTEN(books);

/* --- pools --- */

static struct pool *find_pool(uint64_t handle) {
    return GPS_ENTRY_OF(struct pool, entry, gps_table_find(&books.pools, handle));
}

/* A pool that was taken and comes back keeps its serial. */
void gps_pool_add(const struct gps_pool *pool) {
    GPS_LOCKED(&books.lock);
    struct pool *found = find_pool(pool->pool);
    if (!found)
        found = gps_table_make(&books.pools, &books.pool_slab, sizeof(*found), pool->pool);
    if (!found)
        return;
    found->is = *pool;
    if (!pool->serial)
        found->is.serial = ++books.serial;
}

bool gps_pool_take(uint64_t handle, struct gps_pool *taken) {
    GPS_LOCKED(&books.lock);
    struct pool *found = find_pool(handle);
    if (!found)
        return false;
    *taken = found->is;
    gps_table_drop(&books.pools, &books.pool_slab, &found->entry);
    return true;
}

bool gps_pool_find(uint64_t handle, struct gps_pool *found) {
    GPS_LOCKED(&books.lock);
    return GPS_GIVE(find_pool(handle), is, found);
}

/* --- pointers --- */

static struct pointer *find_pointer(uint64_t address) {
    return GPS_ENTRY_OF(struct pointer, entry, gps_table_find(&books.pointers, address));
}

/* The pool of a pointer counts one more, or less, if it is still that pool. */
static void pool_count_pointer(const struct gps_pool_pointer *pointer, int more) {
    struct pool *pool = find_pool(pointer->pool);
    if (pool && pool->is.serial == pointer->serial)
        pool->is.pointers += (uint32_t)more;
}

static void pool_pointer_drop(struct pointer *pointer) {
    pool_count_pointer(&pointer->is, -1);
    gps_table_drop(&books.pointers, &books.pointer_slab, &pointer->entry);
}

static void pool_pointer_insert(const struct gps_pool_pointer *pointer) {
    const struct pool *pool = find_pool(pointer->pool);
    struct pointer *made =
        gps_table_make(&books.pointers, &books.pointer_slab, sizeof(*made), pointer->pointer);
    if (!made)
        return;
    made->is = *pointer;
    if (pool && !pointer->serial)
        made->is.serial = pool->is.serial;
    pool_count_pointer(&made->is, 1);
}

bool gps_pool_pointer_add(const struct gps_pool_pointer *pointer) {
    atomic_store(&books.any, true);
    GPS_LOCKED(&books.lock);
    struct pointer *found = find_pointer(pointer->pointer);
    if (found && found->is.imports && pointer->imports) {
        found->is.imports++;
        return true;
    }
    if (found) /* freed unseen */
        pool_pointer_drop(found);
    pool_pointer_insert(pointer);
    return false;
}

void gps_pool_pointer_exported(uint64_t address, const struct gps_id *id, uint32_t trace) {
    if (!atomic_load(&books.any))
        return;
    GPS_LOCKED(&books.lock);
    struct pointer *found = find_pointer(address);
    if (!found)
        return;
    found->is.exported = true;
    found->is.id = *id;
    found->is.exported_at = trace;
}

bool gps_pool_pointer_set_slot(uint64_t address, const struct gps_id *id, unsigned slot) {
    GPS_LOCKED(&books.lock);
    struct pointer *found = find_pointer(address);
    if (!found || !found->is.imports || found->is.slot != GPS_NO_SLOT)
        return false;
    found->is.id = *id;
    found->is.slot = slot;
    return true;
}

bool gps_pool_pointer_find(uint64_t address, struct gps_pool_pointer *found) {
    GPS_LOCKED(&books.lock);
    return GPS_GIVE(find_pointer(address), is, found);
}

bool gps_pool_pointer_take(uint64_t address, struct gps_pool_pointer *taken) {
    if (!atomic_load_explicit(&books.any, memory_order_relaxed))
        return false;
    GPS_LOCKED(&books.lock);
    struct pointer *found = find_pointer(address);
    if (found) {
        *taken = found->is;
        pool_pointer_drop(found);
    }
    return found != NULL;
}

bool gps_pool_pointer_of(const struct gps_pool *pool, struct gps_pool_pointer *found) {
    GPS_LOCKED(&books.lock);
    const struct pointer *pointer = GPS_TABLE_SEEK(
        pointer, &books.pointers, one->is.pool == pool->pool && one->is.serial == pool->serial);
    return GPS_GIVE(pointer, is, found);
}

bool gps_pool_pointer_has(const struct gps_id *id) {
    GPS_LOCKED(&books.lock);
    return GPS_TABLE_SEEK(pointer, &books.pointers,
                          one->is.exported && memcmp(&one->is.id, id, sizeof(*id)) == 0) != NULL;
}

unsigned gps_pool_pointer_take_of(uint64_t context, uint32_t era, struct gps_pool_pointer *taken,
                                  unsigned max) {
    unsigned count = 0;
    if (!atomic_load(&books.any))
        return 0;
    GPS_LOCKED(&books.lock);
    GPS_TABLE_EACH(pointer, one, &books.pointers) {
        if (count < max && one->is.context == context && (int32_t)(one->is.era - era) < 0) {
            taken[count++] = one->is;
            pool_pointer_drop(one);
        }
    }
    return count;
}
