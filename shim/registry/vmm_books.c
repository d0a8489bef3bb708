/*
 * Memory lives while the program has a reference to it or a mapping of it. Then its bytes count,
 * and its handle finds it, unless its number was given again. A call under way pins the object: if
 * that ends meanwhile it is not counted and not found, and comes back if the call fails.
 */
#include "vmm_books.h"

#include <stdatomic.h>

#include "freed_history.h"
#include "hash_table.h"
#include "range_tree.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct memory {
    struct gps_entry entry; /* by its handle, if `found` */
    struct gps_vmm_memory is;
    uint32_t pins, descriptors;
    bool alive, found;
    bool replaced; /* the driver has given its number again: no look-up finds this memory */
};

struct mapping {
    struct gps_range range;
    struct gps_vmm_mapping is;
    struct memory *memory; /* NULL: not in the books */
};

struct descriptor {
    struct gps_entry entry; /* by its number + 1 */
    struct gps_vmm_descriptor is;
    struct memory *memory; /* also after its end; NULL: of a pool, or not known */
};

static struct {
    GPS_LOCK(GPS_RANK_BOOKS) lock;
    struct gps_table handles, descriptors;
    struct gps_range *mappings, *reservations;
    struct gps_slab memory_slab, mapping_slab, reservation_slab, descriptor_slab;
    uint64_t serial;
    _Atomic uint64_t bytes[GPS_VMM_GPUS];
    _Atomic uint32_t changed;
    _Atomic uint32_t peers[GPS_VMM_GPUS]; /* by the device that has access, a bit each */
    struct gps_vmm_refusal refusal;
    _Atomic bool is_refused;
    bool lost; /* a mapping, for want of memory */
} books;
GPS_FORGOTTEN(books);

/* The caller sees a pending object without its type, which the function that gets it back knows. */
#define PENDING(object)       ((struct gps_vmm_pending *)(object))
#define OBJECT(type, pending) ((struct type *)(pending))

/* --- reservations --- */

static void add_reservation(struct gps_range *made) {
    struct gps_range *old;
    while ((old = gps_range_from(books.reservations, made->from)) &&
           old->from < gps_range_end(made)) { /* given back unseen */
        gps_range_remove(&books.reservations, old);
        gps_slab_put(&books.reservation_slab, old);
    }
    gps_range_add(&books.reservations, made);
}

void gps_vmm_reserved(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&books.lock);
    struct gps_range *made = gps_slab_get(&books.reservation_slab, sizeof(*made));
    if (!made)
        return;
    *made = (struct gps_range){.from = pointer, .size = size};
    add_reservation(made);
}

struct gps_vmm_pending *gps_vmm_unreserve(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&books.lock);
    struct gps_range *range = gps_range_from(books.reservations, pointer);
    if (!range || range->from != pointer || range->size != size)
        return NULL;
    gps_range_remove(&books.reservations, range);
    return PENDING(range);
}

void gps_vmm_unreserved(struct gps_vmm_pending *pending, bool succeeded) {
    struct gps_range *taken = OBJECT(gps_range, pending);
    if (!taken)
        return;
    GPS_LOCKED(&books.lock);
    if (succeeded)
        gps_slab_put(&books.reservation_slab, taken);
    else
        add_reservation(taken);
}

bool gps_vmm_reservation(uint64_t address, uint64_t *pointer, uint64_t *size) {
    GPS_LOCKED(&books.lock);
    const struct gps_range *range = gps_range_from(books.reservations, address);
    if (!range || range->from > address)
        return false;
    *pointer = range->from;
    *size = range->size;
    return true;
}

/* --- memory --- */

static struct memory *vmm_memory_find(uint64_t handle) {
    return GPS_ENTRY_OF(struct memory, entry, gps_table_find(&books.handles, handle));
}

static struct memory *vmm_memory_referenced(uint64_t handle) {
    struct memory *memory = vmm_memory_find(handle);
    return memory && memory->is.references ? memory : NULL;
}

/* Counts `bytes` more, or less, of a device's memory that the program made. */
static void vmm_bytes_count(const struct memory *memory, uint64_t bytes) {
    const int device = memory->is.device;
    if (memory->is.taken || memory->is.origin != GPS_VMM_CREATED || device < 0 ||
        device >= GPS_VMM_GPUS)
        return;
    atomic_fetch_add(&books.bytes[device], bytes);
    atomic_fetch_or(&books.changed, UINT32_C(1) << device);
}

static void hide(struct memory *memory) {
    if (memory->found)
        gps_table_remove(&books.handles, &memory->entry);
    memory->found = false;
}

static void vmm_memory_show(struct memory *memory) {
    if (!memory->found && !memory->replaced && !vmm_memory_find(memory->is.handle))
        memory->found = gps_table_add(&books.handles, &memory->entry, memory->is.handle);
}

/* Called after a reference, a mapping, a pin or a descriptor more, or less. */
static void settle(struct memory *memory) {
    const bool alive = memory->is.references || memory->is.mappings;
    if (alive && !memory->alive) {
        vmm_bytes_count(memory, memory->is.size);
        vmm_memory_show(memory);
    } else if (!alive && memory->alive) {
        vmm_bytes_count(memory, -memory->is.size);
        hide(memory);
    }
    memory->alive = alive;
    if (!alive && !memory->pins && !memory->descriptors)
        gps_slab_put(&books.memory_slab, memory);
}

/* Memory of a number given again has no references: its release was unseen, or is under way. */
static void vmm_memory_replace(struct memory *before) {
    if (!before)
        return;
    hide(before);
    before->replaced = true;
    before->is.references = 0;
    settle(before);
}

void gps_vmm_made(const struct gps_vmm_memory *made) {
    gps_freed_forget(GPS_FREED_HANDLE, 2 * made->handle);
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_referenced(made->handle);
    if (memory && made->origin == GPS_VMM_IMPORTED) {
        memory->is.references++;
        return;
    }
    vmm_memory_replace(vmm_memory_find(made->handle));
    memory = gps_slab_get(&books.memory_slab, sizeof(*memory));
    if (!memory)
        return;
    *memory = (struct memory){.is = *made};
    memory->is.serial = ++books.serial;
    memory->is.references = 1;
    settle(memory);
}

void gps_vmm_retained(uint64_t handle) {
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_find(handle);
    gps_freed_forget(GPS_FREED_HANDLE, 2 * handle);
    if (memory)
        memory->is.references++;
}

void gps_vmm_bound(uint64_t handle) {
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_find(handle);
    if (memory)
        memory->is.bound = true;
}

void gps_vmm_taken(uint64_t handle, bool taken) {
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_find(handle);
    if (!memory || memory->is.taken == taken)
        return;
    if (memory->alive && taken)
        vmm_bytes_count(memory, -memory->is.size);
    memory->is.taken = taken;
    if (memory->alive && !taken)
        vmm_bytes_count(memory, memory->is.size);
}

static struct memory *vmm_memory_pin(struct memory *memory) {
    if (memory)
        memory->pins++;
    return memory;
}

static void note_last_release(const struct memory *memory, uint32_t trace) {
    gps_freed_note(GPS_FREED_HANDLE, 2 * memory->is.handle,
                   (struct gps_freed){.born = memory->is.made,
                                      .ended = trace,
                                      .size = memory->is.size,
                                      .device = memory->is.device});
}

struct gps_vmm_pending *gps_vmm_release(uint64_t handle, uint32_t trace) {
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_pin(vmm_memory_referenced(handle));
    if (memory) {
        if (--memory->is.references == 0)
            note_last_release(memory, trace);
        settle(memory);
    }
    return PENDING(memory);
}

void gps_vmm_released(struct gps_vmm_pending *pending, bool succeeded) {
    struct memory *memory = OBJECT(memory, pending);
    if (!memory)
        return;
    GPS_LOCKED(&books.lock);
    const struct memory *now = vmm_memory_find(memory->is.handle);
    memory->pins--;
    if (!succeeded && !memory->replaced && (!now || now == memory)) {
        memory->is.references++;
        gps_freed_forget(GPS_FREED_HANDLE, 2 * memory->is.handle);
    }
    settle(memory);
}

static bool vmm_memory_is_unmapped(const struct memory *memory) {
    return memory->is.references && memory->is.unmapped && !memory->is.bound && !memory->pins;
}

unsigned gps_vmm_take_unmapped(struct gps_vmm_memory *taken, unsigned max) {
    unsigned count = 0;
    GPS_LOCKED(&books.lock);
    GPS_TABLE_EACH(memory, memory, &books.handles) {
        if (count == max || !vmm_memory_is_unmapped(memory))
            continue;
        taken[count++] = memory->is;
        memory->is.references = 0;
        settle(memory);
    }
    return count;
}

bool gps_vmm_find(uint64_t handle, struct gps_vmm_memory *found) {
    GPS_LOCKED(&books.lock);
    return GPS_GIVE(vmm_memory_referenced(handle), is, found);
}

/* --- mappings --- */

static struct mapping *mapping_from(uint64_t address) {
    return (struct mapping *)gps_range_from(books.mappings, address);
}
_Static_assert(offsetof(struct mapping, range) == 0, "the first");

static void lose_memory(struct memory *memory) {
    if (!memory)
        return;
    memory->is.mappings--;
    memory->is.unmapped = !memory->is.mappings;
    settle(memory);
}

static void add_mapping(struct mapping *made) {
    struct mapping *old;
    while ((old = mapping_from(made->range.from)) &&
           old->range.from < gps_range_end(&made->range)) { /* unmapped unseen */
        gps_range_remove(&books.mappings, &old->range);
        lose_memory(old->memory);
        gps_slab_put(&books.mapping_slab, old);
    }
    gps_range_add(&books.mappings, &made->range);
}

struct gps_vmm_pending *gps_vmm_map(uint64_t handle) {
    GPS_LOCKED(&books.lock);
    return PENDING(vmm_memory_pin(vmm_memory_find(handle)));
}

/* Of imported memory only its mapping tells the size: it is mapped whole. */
static void gain_mapping(struct memory *memory, const struct gps_vmm_mapping *mapping) {
    if (!memory)
        return;
    memory->is.mappings++;
    memory->is.unmapped = false;
    if (!memory->is.size)
        memory->is.size = mapping->size;
}

void gps_vmm_mapped(struct gps_vmm_pending *pending, const struct gps_vmm_mapping *mapping,
                    bool succeeded) {
    struct memory *memory = OBJECT(memory, pending);
    GPS_LOCKED(&books.lock);
    struct mapping *made =
        succeeded ? gps_slab_get(&books.mapping_slab, sizeof(*made)) : (struct mapping *)NULL;
    books.lost |= succeeded && !made;
    if (made) {
        gps_freed_forget(GPS_FREED_MAPPING, mapping->pointer);
        made->range = (struct gps_range){.from = mapping->pointer, .size = mapping->size};
        made->is = *mapping;
        made->memory = memory;
        gain_mapping(memory, mapping);
        add_mapping(made);
    }
    if (memory) {
        memory->pins--;
        settle(memory);
    }
}

/* Whether mappings fill the range. */
static bool vmm_range_is_filled(uint64_t pointer, uint64_t size) {
    uint64_t at = pointer;
    const struct mapping *mapping;
    while (at - pointer < size && (mapping = mapping_from(at)) && mapping->range.from == at)
        at = gps_range_end(&mapping->range);
    return size && at - pointer == size;
}

bool gps_vmm_is_filled(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&books.lock);
    return vmm_range_is_filled(pointer, size);
}

static bool vmm_mapping_is_within(uint64_t address) {
    const struct mapping *mapping = mapping_from(address);
    return mapping && mapping->range.from < address;
}

/* Notes no stack: a walk of it costs more than all else here. */
static void note_unmapped(const struct mapping *mapping) {
    gps_freed_note(GPS_FREED_MAPPING, mapping->range.from,
                   (struct gps_freed){.born = mapping->is.mapped,
                                      .size = mapping->range.size,
                                      .device = mapping->memory ? mapping->memory->is.device : -1});
}

/* The driver unmaps all mappings in the range, which may have holes, and refuses to cut one (H200,
 * driver 580, 2026-11-28). They are linked by `high`, the last one first. */
struct gps_vmm_pending *gps_vmm_unmap(uint64_t pointer, uint64_t size, bool noted) {
    struct gps_range *list = NULL;
    struct mapping *mapping;
    GPS_LOCKED(&books.lock);
    if (vmm_mapping_is_within(pointer) || vmm_mapping_is_within(pointer + size))
        return NULL;
    while ((mapping = mapping_from(pointer)) && mapping->range.from - pointer < size) {
        gps_range_remove(&books.mappings, &mapping->range);
        if (noted)
            note_unmapped(mapping);
        lose_memory(vmm_memory_pin(mapping->memory));
        mapping->range.high = list;
        list = &mapping->range;
    }
    return PENDING(list);
}

static void end_unmap(struct mapping *mapping, bool succeeded) {
    struct memory *const memory = mapping->memory;
    if (memory) {
        memory->pins--;
        memory->is.mappings += !succeeded;
        memory->is.unmapped = !memory->is.mappings;
        settle(memory);
    }
    if (succeeded)
        gps_slab_put(&books.mapping_slab, mapping);
    else
        add_mapping(mapping);
    if (!succeeded)
        gps_freed_forget(GPS_FREED_MAPPING, mapping->range.from);
}

void gps_vmm_unmapped(struct gps_vmm_pending *pending, bool succeeded) {
    struct gps_range *range = (struct gps_range *)pending;
    if (!range)
        return;
    GPS_LOCKED(&books.lock);
    while (range) {
        struct mapping *const mapping = (struct mapping *)range;
        range = range->high;
        end_unmap(mapping, succeeded);
    }
}

static uint64_t with(uint64_t bits, unsigned bit, bool set) {
    const uint64_t one = UINT64_C(1) << (bit < GPS_VMM_HOST ? bit : GPS_VMM_HOST);
    return set ? bits | one : bits & ~one;
}

void gps_vmm_allowed(uint64_t pointer, uint64_t size, unsigned bit, bool reads, bool writes) {
    struct mapping *mapping;
    GPS_LOCKED(&books.lock);
    for (uint64_t at = pointer; at - pointer < size && (mapping = mapping_from(at)) &&
                                mapping->range.from - pointer < size;
         at = gps_range_end(&mapping->range)) {
        mapping->is.readable = with(mapping->is.readable, bit, reads);
        mapping->is.writable = with(mapping->is.writable, bit, writes);
        mapping->is.opened |= reads || writes;
    }
}

bool gps_vmm_mapping_from(uint64_t address, struct gps_vmm_mapping *found,
                          struct gps_vmm_memory *memory) {
    GPS_LOCKED(&books.lock);
    const struct mapping *mapping = mapping_from(address);
    if (!mapping)
        return false;
    *found = mapping->is;
    *memory = mapping->memory ? mapping->memory->is : (struct gps_vmm_memory){.size = 0};
    return true;
}

bool gps_vmm_is_empty(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&books.lock);
    const struct gps_range *place = gps_range_from(books.reservations, pointer);
    const struct mapping *mapping = mapping_from(pointer);
    return !books.lost && size && place && place->from <= pointer &&
           gps_range_end(place) - pointer >= size &&
           (!mapping || (mapping->range.from > pointer && mapping->range.from - pointer >= size));
}

unsigned gps_vmm_take_closed(struct gps_vmm_closed *taken, unsigned max) {
    unsigned count = 0;
    GPS_LOCKED(&books.lock);
    for (struct mapping *mapping = mapping_from(0); mapping && count < max;
         mapping = mapping_from(gps_range_end(&mapping->range))) {
        if (mapping->is.opened || !mapping->memory || mapping->memory->is.bound)
            continue;
        mapping->is.opened = true;
        taken[count++] = (struct gps_vmm_closed){mapping->is, mapping->memory->is};
    }
    return count;
}

void gps_vmm_bound_at(uint64_t address) {
    GPS_LOCKED(&books.lock);
    const struct mapping *mapping = mapping_from(address);
    if (mapping && mapping->range.from <= address && mapping->memory)
        mapping->memory->is.bound = true;
}

/* --- peers --- */

static bool are_counted(int device, int peer) {
    return device >= 0 && device < GPS_VMM_GPUS && peer >= 0 && peer < GPS_VMM_GPUS;
}

void gps_vmm_peer_enabled(int device, int peer) {
    if (are_counted(device, peer))
        atomic_fetch_or(&books.peers[device], UINT32_C(1) << peer);
}

bool gps_vmm_has_peer(int device, int peer) {
    return are_counted(device, peer) && atomic_load(&books.peers[device]) >> peer & 1;
}

/* --- descriptors --- */

static struct descriptor *descriptor_of(int number) {
    return number < 0 ? NULL
                      : GPS_ENTRY_OF(struct descriptor, entry,
                                     gps_table_find(&books.descriptors, (uint64_t)number + 1));
}

static void leave_memory(struct descriptor *descriptor) {
    struct memory *const memory = descriptor->memory;
    descriptor->memory = NULL;
    if (!memory)
        return;
    memory->descriptors--;
    settle(memory);
}

static void drop_descriptor(struct descriptor *descriptor) {
    leave_memory(descriptor);
    gps_table_drop(&books.descriptors, &books.descriptor_slab, &descriptor->entry);
}

void gps_vmm_described(int number, uint64_t handle, const struct gps_vmm_descriptor *is) {
    GPS_LOCKED(&books.lock);
    struct memory *memory = vmm_memory_find(handle);
    struct descriptor *descriptor = descriptor_of(number);
    if (descriptor)
        leave_memory(descriptor);
    else if (number >= 0)
        descriptor = gps_table_make(&books.descriptors, &books.descriptor_slab, sizeof(*descriptor),
                                    (uint64_t)number + 1);
    if (!descriptor)
        return;
    descriptor->is = *is;
    descriptor->is.serial = memory ? memory->is.serial : 0;
    descriptor->memory = memory;
    if (memory)
        memory->descriptors++;
}

void gps_vmm_consumed(int number) {
    GPS_LOCKED(&books.lock);
    struct descriptor *descriptor = descriptor_of(number);
    if (descriptor)
        drop_descriptor(descriptor);
}

bool gps_vmm_descriptor_of(int number, struct gps_vmm_descriptor *found) {
    GPS_LOCKED(&books.lock);
    return GPS_GIVE(descriptor_of(number), is, found);
}

unsigned gps_vmm_take_left(struct gps_vmm_left *taken, unsigned max) {
    unsigned count = 0;
    GPS_LOCKED(&books.lock);
    GPS_TABLE_EACH(descriptor, one, &books.descriptors) {
        const struct memory *const memory = one->memory;
        if (count == max || !memory || memory->alive || memory->pins)
            continue;
        taken[count++] = (struct gps_vmm_left){
            .number = (int)(one->entry.key - 1), .descriptor = one->is, .memory = memory->is};
        drop_descriptor(one);
    }
    return count;
}

/* --- fabric handles --- */

void gps_vmm_fabric_refused(const struct gps_vmm_refusal *refusal) {
    GPS_LOCKED(&books.lock);
    if (!atomic_load(&books.is_refused))
        books.refusal = *refusal;
    atomic_store(&books.is_refused, true);
}

void gps_vmm_fabric_forget(void) {
    if (atomic_load_explicit(&books.is_refused, memory_order_relaxed))
        atomic_store(&books.is_refused, false);
}

bool gps_vmm_take_refusal(struct gps_vmm_refusal *refusal) {
    GPS_LOCKED(&books.lock);
    *refusal = books.refusal;
    return atomic_exchange(&books.is_refused, false);
}

/* --- sums --- */

uint64_t gps_vmm_bytes(int device) {
    return atomic_load(&books.bytes[device]);
}

/* One load, where nothing has changed. */
uint32_t gps_vmm_changed(void) {
    return atomic_load(&books.changed) ? atomic_exchange(&books.changed, 0) : 0;
}
