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
    _Atomic bool any; /* pointer, ever */
} books;
GPS_FORGOTTEN(books);

/* --- pools --- */

static struct pool *find_pool(uint64_t handle) {
    return GPS_ENTRY_OF(struct pool, entry, gps_table_find(&books.pools, handle));
}

static struct pool *new_pool(uint64_t handle) {
    struct pool *made = gps_slab_get(&books.pool_slab, sizeof(*made));
    if (!made || gps_table_add(&books.pools, &made->entry, handle))
        return made;
    gps_slab_put(&books.pool_slab, made);
    return NULL;
}

/* One that was taken and comes back keeps its serial. */
void gps_pool_add(const struct gps_pool *pool) {
    GPS_LOCKED(&books.lock);
    struct pool *found = find_pool(pool->pool);
    found = found ? found : new_pool(pool->pool);
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
    gps_table_remove(&books.pools, &found->entry);
    gps_slab_put(&books.pool_slab, found);
    return true;
}

bool gps_pool_find(uint64_t handle, struct gps_pool *found) {
    GPS_LOCKED(&books.lock);
    const struct pool *pool = find_pool(handle);
    if (pool)
        *found = pool->is;
    return pool != NULL;
}

/* --- pointers --- */

static struct pointer *find_pointer(uint64_t address) {
    return GPS_ENTRY_OF(struct pointer, entry, gps_table_find(&books.pointers, address));
}

/* The pool of a pointer counts one more, or less, if it is still that pool. */
static void count(const struct gps_pool_pointer *pointer, int more) {
    struct pool *pool = find_pool(pointer->pool);
    if (pool && pool->is.serial == pointer->serial)
        pool->is.pointers += (uint32_t)more;
}

static void drop(struct pointer *pointer) {
    count(&pointer->is, -1);
    gps_table_remove(&books.pointers, &pointer->entry);
    gps_slab_put(&books.pointer_slab, pointer);
}

static void insert(const struct gps_pool_pointer *pointer) {
    struct pointer *made = gps_slab_get(&books.pointer_slab, sizeof(*made));
    const struct pool *pool = find_pool(pointer->pool);
    if (!made)
        return;
    if (!gps_table_add(&books.pointers, &made->entry, pointer->pointer)) {
        gps_slab_put(&books.pointer_slab, made);
        return;
    }
    made->is = *pointer;
    if (pool && !pointer->serial)
        made->is.serial = pool->is.serial;
    count(&made->is, 1);
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
        drop(found);
    insert(pointer);
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
    const struct pointer *pointer = find_pointer(address);
    if (pointer)
        *found = pointer->is;
    return pointer != NULL;
}

bool gps_pool_pointer_take(uint64_t address, struct gps_pool_pointer *taken) {
    if (!atomic_load_explicit(&books.any, memory_order_relaxed))
        return false;
    GPS_LOCKED(&books.lock);
    struct pointer *found = find_pointer(address);
    if (found) {
        *taken = found->is;
        drop(found);
    }
    return found != NULL;
}

static struct pointer *next(struct pointer *pointer) {
    return GPS_ENTRY_OF(struct pointer, entry,
                        gps_table_next(&books.pointers, pointer ? &pointer->entry : NULL));
}

bool gps_pool_pointer_of(const struct gps_pool *pool, struct gps_pool_pointer *found) {
    GPS_LOCKED(&books.lock);
    const struct pointer *pointer = next(NULL);
    while (pointer && (pointer->is.pool != pool->pool || pointer->is.serial != pool->serial))
        pointer = next((struct pointer *)pointer);
    if (pointer)
        *found = pointer->is;
    return pointer != NULL;
}

bool gps_pool_pointer_has(const struct gps_id *id) {
    bool has = false;
    GPS_LOCKED(&books.lock);
    for (struct pointer *pointer = next(NULL); pointer && !has; pointer = next(pointer))
        has = pointer->is.exported && memcmp(&pointer->is.id, id, sizeof(*id)) == 0;
    return has;
}

unsigned gps_pool_pointer_take_of(uint64_t context, uint32_t era, struct gps_pool_pointer *taken,
                                  unsigned max) {
    unsigned count = 0;
    if (!atomic_load(&books.any))
        return 0;
    GPS_LOCKED(&books.lock);
    for (struct pointer *pointer = next(NULL), *after; pointer && count < max; pointer = after) {
        after = next(pointer);
        if (pointer->is.context == context && (int32_t)(pointer->is.era - era) < 0) {
            taken[count++] = pointer->is;
            drop(pointer);
        }
    }
    return count;
}
