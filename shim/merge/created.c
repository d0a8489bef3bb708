#include "created.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "driver/scope.h"
#include "exclusion.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "log/event_log.h"
#include "not_merging.h"
#include "process/caller.h"
#include "registry/hash_table.h"
#include "registry/vmm_books.h"
#include "shared_block.h"
#include "util/clock.h"
#include "util/forgotten.h"

#define NUMBERS (UINT64_C(0x9750) << 48)
#define AGAIN   (5 * GPS_SECOND) /* after a parting that failed */

struct gps_created {
    struct gps_entry entry;
    uint64_t handle, size;
    uint64_t memory; /* the driver's allocation; 0: it is parted */
    struct gps_block_like like;
    struct gps_mapped_as as;
    uint32_t references; /* the program's */
    bool mapped;         /* `area` is in the table */
    bool kept;           /* one allocation for good; it has no area */
    bool wanted;         /* to be parted */
    uint64_t again;      /* no parting before this */
    struct gps_area *area;
};

/* A number is given to one allocation, and never again. */
static struct {
    struct gps_table table; /* by handle */
    uint64_t last;
    _Atomic bool any;
} state;
GPS_FORGOTTEN(state);

bool gps_created_any(void) {
    return atomic_load_explicit(&state.any, memory_order_relaxed);
}

/* --- the table, with the lock --- */

static struct gps_created *of_entry(struct gps_entry *entry) {
    return GPS_ENTRY_OF(struct gps_created, entry, entry);
}

static struct gps_created *created_find(uint64_t handle) {
    return of_entry(gps_table_find(&state.table, handle));
}

static struct gps_created *created_find_referenced(uint64_t handle) {
    struct gps_created *created = created_find(handle);
    return created && created->references ? created : NULL;
}

static struct gps_created *created_next(struct gps_created *created) {
    return of_entry(gps_table_next(&state.table, created ? &created->entry : NULL));
}

static bool created_add(struct gps_created *created) {
    created->handle = NUMBERS | ++state.last;
    atomic_store(&state.any, true);
    return gps_table_add(&state.table, &created->entry, created->handle);
}

static void created_forget(struct gps_created *created) {
    gps_table_remove(&state.table, &created->entry);
    free(created);
}

/* --- its blocks --- */

/* Releases the memory of a block that is not mapped any more. */
static void created_end_block(struct gps_block *block) {
    const bool merged = gps_block_is_merged(block);
    if (block->memory)
        gps_ops->block_release(block->memory);
    if (merged) {
        gps_merged_sum_private(block->size);
        gps_shared_release(block->slot);
    }
    free(block->chunks);
    gps_block_set_state(block, GPS_BLOCK_UNBACKED);
}

static void leave_table(struct gps_created *created) {
    if (created->mapped)
        gps_area_remove(created->area);
    created->mapped = false;
}

/* No block of the area is mapped: only the driver's allocation may be. */
static void end_area(struct gps_created *created) {
    struct gps_area *area = created->area;
    if (!area)
        return;
    leave_table(created);
    for (unsigned i = 0; i < area->count; i++)
        created_end_block(&area->blocks[i]);
    free(area);
    created->area = NULL;
}

/* Neither a reference nor a mapping is left. */
static void created_end(struct gps_created *created) {
    end_area(created);
    if (created->memory)
        gps_ops->block_release(created->memory);
    created_forget(created);
}

/* The memory is one allocation for good. Without a reference only the driver's mappings hold it. */
static void created_keep(struct gps_created *created) {
    end_area(created);
    created->kept = true;
    gps_vmm_taken(created->handle, false);
    if (!created->references)
        created_end(created);
}

/* The area that was taken when it was made waits for its first mapping. */
static struct gps_area *created_make_area(const struct gps_merge_request *request, uint64_t size) {
    struct gps_area *area = gps_area_new(size, GPS_MERGE_LARGE);
    if (!area)
        return NULL;
    area->size = size;
    area->rule = request->rule;
    area->index = request->index;
    area->device = request->device;
    memcpy(area->uuid, request->uuid, GPS_UUID_BYTES);
    gps_caller_name(area->caller, sizeof(area->caller));
    area->times = gps_exclusion_times(area);
    for (unsigned i = 0; i < area->count; i++) {
        gps_block_set_state(&area->blocks[i], GPS_BLOCK_PRIVATE);
        area->blocks[i].excluded = area->times >= GPS_EXCLUDED || gps_rdma_forbids(area->rule);
    }
    return area;
}

bool gps_created_make(const struct gps_merge_request *request, const struct gps_block_like *like,
                      uint64_t memory, uint64_t *handle) {
    struct gps_created *created = calloc(1, sizeof(*created));
    struct gps_area *area = created ? created_make_area(request, request->size) : NULL;
    bool added = false;
    if (area) {
        *created = (struct gps_created){
            .size = request->size, .memory = memory, .like = *like, .references = 1, .area = area};
        area->created = created;
        GPS_AREAS_LOCKED();
        added = created_add(created);
        *handle = created->handle;
    }
    if (!added) {
        free(area);
        free(created);
    }
    return added;
}

/* --- one allocation for good --- */

/* The current context, if it is of that device; else 0. */
static uint64_t current_context(int wanted) {
    uint64_t context = 0;
    int device;
    return gps_ops->device(&device) == GPS_OK && device == wanted &&
                   gps_ops->context(&context) == GPS_OK
               ? context
               : 0;
}

/* A context of its device: its own, the current one, the device's. */
static int created_area_enter(const struct gps_area *area) {
    if (gps_area_enter(area) == GPS_OK)
        return GPS_OK;
    uint64_t context = current_context(area->device);
    if (!context)
        context = gps_ops->primary(area->device);
    return context ? gps_ops->enter(context) : GPS_INVALID_CONTEXT;
}

/* Memory with the program's properties, mapped to be filled. */
struct copy {
    uint64_t memory, view, size;
};

static int begin_copy(const struct gps_created *created, struct copy *copy) {
    *copy = (struct copy){.size = created->size};
    int code = gps_ops->block_create_like(&created->like, created->size, &copy->memory);
    if (code != GPS_OK)
        return code;
    code = gps_block_view(created->area, copy->memory, copy->size, true, &copy->view);
    if (code != GPS_OK)
        gps_ops->block_release(copy->memory);
    return code;
}

static void end_copy(const struct copy *copy, bool taken) {
    gps_block_unview(copy->view, copy->size);
    if (!taken)
        gps_ops->block_release(copy->memory);
}

static int copy_block(const struct gps_area *area, const struct gps_block *block, uint64_t to) {
    uint64_t view;
    int code = gps_block_view(area, block->memory, block->size, false, &view);
    if (code != GPS_OK)
        return code;
    code = gps_ops->copy(to + block->at, view, block->size);
    gps_block_unview(view, block->size);
    return code;
}

static int copy_blocks(const struct gps_created *created, uint64_t to) {
    const struct gps_area *area = created->area;
    int code = GPS_OK;
    if (created->mapped && area->open)
        return gps_ops->copy(to, area->pointer, area->extent);
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++)
        code = copy_block(area, &area->blocks[i], to);
    return code;
}

static int map_blocks(const struct gps_area *area) {
    return gps_block_place_all(area, area->blocks, area->count);
}

static int created_map_memory(const struct gps_area *area, uint64_t memory) {
    return gps_block_place(area, area->pointer, area->extent, memory, true);
}

/* Puts the copy in the memory's place. The device is idle, or the memory is not mapped. */
static int created_exchange(struct gps_created *created, const struct copy *copy) {
    const struct gps_area *area = created->area;
    int code = copy_blocks(created, copy->view);
    if (code != GPS_OK || !created->mapped)
        return code;
    code = gps_ops->unmap(area->pointer, area->extent);
    if (code == GPS_OK && (code = created_map_memory(area, copy->memory)) != GPS_OK)
        map_blocks(area);
    return code;
}

/* In a context of the device, with both locks; the second is given back until the device idles. */
static int make_whole(uint64_t handle, struct gps_swap_tries *attempts) {
    struct gps_created *created = created_find(handle);
    const bool gated = created->mapped;
    struct copy copy;
    int code = begin_copy(created, &copy);
    if (code != GPS_OK)
        return code;
    if (gated) {
        gps_area_unlock();
        const bool idle = gps_swap_try(attempts);
        gps_area_lock();
        created = created_find(handle);
        if (!idle || !created) {
            end_copy(&copy, false);
            if (idle)
                gps_swap_end();
            return idle ? GPS_OK : GPS_NOT_READY;
        }
    }
    code = created_exchange(created, &copy);
    if (code == GPS_OK) {
        created->memory = copy.memory;
        created_keep(created);
    }
    if (gated)
        gps_swap_end();
    end_copy(&copy, code == GPS_OK);
    return code;
}

/* GPS_NOT_READY: not yet. */
static int try_to_keep(uint64_t handle, struct gps_swap_tries *attempts) {
    GPS_AREAS_LOCKED();
    struct gps_created *created = created_find(handle);
    if (!created || created->kept)
        return GPS_OK;
    if (created->memory) {
        created_keep(created);
        return GPS_OK;
    }
    int code = created_area_enter(created->area);
    if (code != GPS_OK)
        return code;
    code = make_whole(handle, attempts);
    gps_ops->leave();
    return code;
}

static int keep_whole(uint64_t handle) {
    struct gps_swap_tries attempts = {.failed = 0};
    int code;
    for (;;) {
        gps_swap_lock();
        code = try_to_keep(handle, &attempts);
        gps_swap_unlock();
        if (code != GPS_NOT_READY)
            return code;
        gps_swap_wait(&attempts);
    }
}

/* --- by the handle --- */

bool gps_created_release(uint64_t handle) {
    GPS_DRIVER_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_created *created = created_find_referenced(handle);
    if (!created)
        return false;
    if (--created->references == 0 && !created->mapped)
        created_end(created);
    return true;
}

bool gps_created_like(uint64_t handle, struct gps_block_like *like) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_created *created = created_find_referenced(handle);
    if (created)
        *like = created->like;
    return created != NULL;
}

/* True: *memory is the answer, or 0. */
static bool has_no_handles(uint64_t handle, uint32_t types, uint64_t *memory) {
    GPS_AREAS_LOCKED();
    const struct gps_created *created = created_find_referenced(handle);
    const bool none = !created || (types && !(created->like.types & types));
    *memory = created ? created->memory : 0;
    return none;
}

int gps_created_keep(uint64_t handle, uint32_t types, uint64_t *memory) {
    GPS_DRIVER_SCOPE();
    if (has_no_handles(handle, types, memory))
        return GPS_OK;
    const int code = keep_whole(handle);
    if (code == GPS_OK)
        has_no_handles(handle, types, memory);
    return code;
}

/* --- mappings --- */

static void begin_area(struct gps_area *area) {
    area->context = current_context(area->device);
    area->made = gps_streams_epoch;
    area->open = false;
    for (unsigned i = 0; i < area->count; i++) {
        area->blocks[i].same_since = 0;
        area->blocks[i].written = gps_clock_monotonic();
        area->blocks[i].writers = 0;
    }
}

static int map_first(struct gps_created *created, const struct gps_created_map *map) {
    struct gps_area *area = created->area;
    area->pointer = map->pointer;
    begin_area(area);
    int code = created->memory ? map->call(map->arg, created->memory) : map_blocks(area);
    if (code != GPS_OK)
        return code;
    gps_area_add(area);
    created->mapped = true;
    return GPS_OK;
}

/* GPS_NOT_READY: the memory is parted, and first made whole: this mapping cannot merge. */
static int try_to_map(const struct gps_created_map *map, bool *found) {
    GPS_AREAS_LOCKED();
    struct gps_created *created = created_find_referenced(map->handle);
    *found = created;
    if (!created)
        return GPS_OK;
    const bool plain = map->plain && map->size == created->size;
    if (!created->kept && plain && !created->mapped)
        return map_first(created, map);
    if (!created->memory)
        return GPS_NOT_READY;
    const int code = map->call(map->arg, created->memory);
    if (code == GPS_OK && !created->kept)
        created_keep(created);
    return code;
}

bool gps_created_map(const struct gps_created_map *map, int *code) {
    bool found;
    GPS_DRIVER_SCOPE();
    for (;;) {
        gps_swap_lock();
        *code = try_to_map(map, &found);
        gps_swap_unlock();
        if (*code != GPS_NOT_READY)
            return found;
        *code = keep_whole(map->handle);
        if (*code != GPS_OK)
            return true;
    }
}

bool gps_created_retain(uint64_t pointer, uint64_t *handle) {
    if (!gps_created_any() || !gps_area_near(pointer, 1))
        return false;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(pointer);
    if (!area || !area->created)
        return false;
    area->created->references++;
    *handle = area->created->handle;
    return true;
}

uint64_t gps_created_retained(uint64_t memory) {
    if (!gps_created_any())
        return memory;
    GPS_DRIVER_SCOPE();
    GPS_AREAS_LOCKED();
    for (struct gps_created *created = created_next(NULL); created;
         created = created_next(created)) {
        if (created->memory != memory)
            continue;
        created->references++; /* the driver counts one for all of the program's */
        gps_ops->block_release(memory);
        return created->handle;
    }
    return memory;
}

/* --- ranges --- */

static struct gps_area *first_in(uint64_t pointer, uint64_t size) {
    struct gps_area *area = gps_area_from(pointer);
    while (area && !area->created && area->pointer - pointer < size)
        area = gps_area_next(area);
    return area && area->created && (area->pointer <= pointer || area->pointer - pointer < size)
               ? area
               : NULL;
}

static struct gps_area *next_in(const struct gps_area *area, uint64_t pointer, uint64_t size) {
    const uint64_t end = area->pointer + area->extent;
    return end - pointer < size ? first_in(end, size - (end - pointer)) : NULL;
}

static bool created_area_has_inside(const struct gps_area *area, uint64_t address) {
    return area && area->created && address > area->pointer &&
           address - area->pointer < area->extent;
}

/* Whether the range begins or ends within such memory: the driver refuses a part of a mapping. */
static bool cuts(uint64_t pointer, uint64_t size) {
    return created_area_has_inside(gps_area_at(pointer), pointer) ||
           created_area_has_inside(gps_area_at(pointer + size), pointer + size);
}

/* An offer that is under way ends as one that the keeper did not answer. */
static void take_from_table(struct gps_created *created) {
    leave_table(created);
    created->wanted = false;
    for (unsigned i = 0; i < created->area->count; i++)
        if (created->area->blocks[i].state == GPS_BLOCK_OFFERING)
            gps_block_set_state(&created->area->blocks[i], GPS_BLOCK_UNANSWERED);
    if (!created->references)
        created_end(created);
}

static int created_unmap_range(uint64_t pointer, uint64_t size, gps_created_range_fn *unmap,
                               const void *arg) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    if (cuts(pointer, size))
        return GPS_INVALID_VALUE;
    const int code = unmap(pointer, size, arg);
    while (code == GPS_OK && (area = first_in(pointer, size)))
        take_from_table(area->created);
    return code;
}

static bool is_near(uint64_t pointer, uint64_t size) {
    return gps_created_any() && size && gps_area_near(pointer, size);
}

bool gps_created_unmap(uint64_t pointer, uint64_t size, gps_created_range_fn *unmap,
                       const void *arg, int *code) {
    if (!is_near(pointer, size))
        return false;
    GPS_DRIVER_SCOPE();
    gps_swap_lock();
    *code = created_unmap_range(pointer, size, unmap, arg);
    gps_swap_unlock();
    return true;
}

/* --- access --- */

static void open_area(struct gps_area *area) {
    area->open = true;
    if (!area->context)
        area->context = current_context(area->device);
}

/* No mapping of a merged block is ever writable. */
static int open_blocks(struct gps_area *area) {
    int code = GPS_OK;
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        code = gps_ops->allow(area->pointer + block->at, block->size, area->device,
                              block->state == GPS_BLOCK_PRIVATE);
    }
    return code;
}

/* Gives parted memory access block by block, and the memory between by the driver's call. */
static int open_all(uint64_t pointer, uint64_t size, gps_created_range_fn *allow, const void *arg) {
    const uint64_t end = pointer + size;
    uint64_t from = pointer; /* so far */
    int code = GPS_OK;
    struct gps_area *area;
    for (area = first_in(pointer, size); area && code == GPS_OK;
         area = next_in(area, pointer, size)) {
        if (area->created->memory)
            continue;
        if (from < area->pointer)
            code = allow(from, area->pointer - from, arg);
        if (code == GPS_OK)
            code = open_blocks(area);
        if (code == GPS_OK)
            open_area(area);
        from = area->pointer + area->extent;
    }
    if (code == GPS_OK && from < end)
        code = allow(from, end - from, arg);
    for (area = first_in(pointer, size); area && code == GPS_OK;
         area = next_in(area, pointer, size))
        open_area(area);
    return code;
}

/* GPS_NOT_READY: *handle is to be made whole first. */
static int try_to_allow(uint64_t pointer, uint64_t size, int device, gps_created_range_fn *allow,
                        const void *arg, uint64_t *handle) {
    bool parted = false;
    GPS_AREAS_LOCKED();
    if (cuts(pointer, size))
        return GPS_INVALID_VALUE;
    for (struct gps_area *area = first_in(pointer, size); area;
         area = next_in(area, pointer, size)) {
        *handle = area->created->handle;
        if (area->device != device)
            return GPS_NOT_READY;
        parted |= !area->created->memory;
    }
    if (parted && !gps_vmm_is_filled(pointer, size))
        return GPS_INVALID_VALUE;
    return open_all(pointer, size, allow, arg);
}

bool gps_created_allow(uint64_t pointer, uint64_t size, int device, gps_created_range_fn *allow,
                       const void *arg, int *code) {
    uint64_t handle = 0;
    if (!is_near(pointer, size))
        return false;
    GPS_DRIVER_SCOPE();
    for (;;) {
        gps_swap_lock();
        *code = try_to_allow(pointer, size, device, allow, arg, &handle);
        gps_swap_unlock();
        if (*code != GPS_NOT_READY)
            return true;
        *code = keep_whole(handle);
        if (*code != GPS_OK)
            return true;
    }
}

int gps_created_keep_range(uint64_t pointer, uint64_t size) {
    uint64_t handle;
    int code = GPS_OK;
    if (!is_near(pointer, size))
        return GPS_OK;
    GPS_DRIVER_SCOPE();
    do {
        gps_area_lock();
        const struct gps_area *area = first_in(pointer, size);
        handle = area ? area->created->handle : 0;
        gps_area_unlock();
        if (handle)
            code = keep_whole(handle);
    } while (handle && code == GPS_OK);
    return code;
}

bool gps_created_parted(uint64_t address, uint64_t serial, struct gps_mapped_as *as) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_of(address, serial);
    const bool parted = area && area->created && !area->created->memory;
    if (parted)
        *as = area->created->as;
    return parted;
}

/* --- parting --- */

enum { PARTING_MOST = GPS_CREATED_MOST / GPS_MERGE_SMALL };

static struct {
    uint64_t pointer, serial, size; /* of the area */
    uint64_t view;                  /* where the new blocks are mapped, side by side; 0: nowhere */
    uint64_t mapped;                /* bytes of the new blocks that are mapped */
    unsigned count;
    bool taken; /* they are the area's */
    uint64_t memory[PARTING_MOST];
} parting;
GPS_FORGOTTEN(parting);

bool gps_created_is_to_part(uint64_t address, uint64_t serial) {
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_of(address, serial);
    const bool whole = area && area->created && area->created->memory;
    if (whole)
        area->created->wanted = true;
    return whole;
}

bool gps_parting_next(uint64_t only, bool again) {
    const uint64_t now = gps_clock_monotonic();
    (void)only;
    (void)again;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        struct gps_created *created = area->created;
        if (!created || !created->wanted || !gps_area_is_usable(area) || now < created->again)
            continue;
        created->again = now + AGAIN;
        parting.pointer = area->pointer;
        parting.serial = area->serial;
        parting.size = area->extent;
        parting.view = parting.mapped = 0;
        parting.count = 0;
        parting.taken = false;
        return true;
    }
    return false;
}

static struct gps_area *parting_area(void) {
    struct gps_area *area = gps_area_of(parting.pointer, parting.serial);
    return area && area->created->memory && gps_area_is_usable(area) ? area : NULL;
}

static bool prepare_block(const struct gps_area *area, const struct gps_block *block) {
    uint64_t memory;
    if (gps_ops->block_create(area->device, block->size, &memory) != GPS_OK)
        return false;
    if (gps_block_map(area, parting.view + block->at, block->size, memory, true) != GPS_OK) {
        gps_ops->block_release(memory);
        return false;
    }
    parting.memory[parting.count++] = memory;
    parting.mapped += block->size;
    return true;
}

/* Copies only where other allocations could get as much again. */
static bool prepare_blocks(const struct gps_area *area) {
    bool prepared = gps_block_fits(2 * area->extent);
    for (unsigned i = 0; prepared && i < area->count; i++)
        prepared = prepare_block(area, &area->blocks[i]);
    return prepared;
}

bool gps_parting_copy(void) {
    bool prepared = false;
    GPS_AREAS_LOCKED();
    const struct gps_area *area = parting_area();
    if (!area || gps_area_enter(area) != GPS_OK)
        return false;
    if (gps_ops->reserve(parting.size, &parting.view) == GPS_OK)
        prepared = prepare_blocks(area);
    else
        parting.view = 0;
    gps_ops->leave();
    return prepared;
}

/* NULL: the blocks have no memory. */
static void give_blocks(struct gps_area *area, const uint64_t *memory) {
    for (unsigned i = 0; i < area->count; i++)
        area->blocks[i].memory = memory ? memory[i] : 0;
}

/* The copy is made here because kernels may write the memory until the device is idle. */
static int part(struct gps_area *area) {
    struct gps_created *created = area->created;
    int code = gps_ops->copy(parting.view, area->pointer, area->extent);
    if (code == GPS_OK)
        code = gps_ops->mapped_as(area->pointer, &created->as);
    if (code == GPS_OK)
        code = gps_ops->unmap(area->pointer, area->extent);
    if (code != GPS_OK)
        return code;
    give_blocks(area, parting.memory);
    code = map_blocks(area);
    if (code == GPS_OK)
        return GPS_OK;
    give_blocks(area, NULL);
    created_map_memory(area, created->memory);
    return code;
}

void gps_parting_exchange(void) {
    struct gps_area *area = parting_area();
    if (!area || area->count != parting.count || gps_area_enter(area) != GPS_OK)
        return;
    if (part(area) == GPS_OK) {
        gps_ops->block_release(area->created->memory);
        area->created->memory = 0;
        area->created->wanted = false;
        parting.taken = true;
    }
    gps_ops->leave();
}

void gps_parting_end(void) {
    if (parting.mapped)
        gps_ops->unmap(parting.view, parting.mapped);
    if (parting.view)
        gps_ops->unreserve(parting.view, parting.size);
    for (unsigned i = 0; i < parting.count && !parting.taken; i++)
        gps_ops->block_release(parting.memory[i]);
    parting.size = 0;
}
