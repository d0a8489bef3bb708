#include "memory.h"

#include "address.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "findings/reporter.h"
#include "frames/exchange.h"
#include "gate/swap.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/import.h"
#include "ipc/reclaim.h"
#include "ipc/token.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/backing.h"
#include "merge/steady.h"
#include "merge/work.h"
#include "merge/writable.h"
#include "pools.h"
#include "process/process.h"
#include "registry/freed_history.h"
#include "registry/padding.h"
#include "registry/vmm_books.h"
#include "rules/rule_counts.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "stack/trace.h"
#include "vmm/mirror.h"
#include "writes/writes.h"

/* --- an allocation --- */

/* A rule shares linear memory, and no node of a graph. Rows are shared in the driver's own pitch,
 * which is looked up only where a rule may fit. */
static bool is_for_rules(struct gps_allocation *asked, uint64_t *size) {
    const struct gps_rows *rows = asked->rows;
    *size = asked->size;
    if (!rows)
        return !asked->pooled || !gps_stream_may_be_capturing(asked->stream);
    if (!rows->count || !gps_rules_may_fit(asked->size, rows->count) ||
        rows->find_pitch(asked) != GPS_OK || rows->count > SIZE_MAX / rows->pitch)
        return false;
    *size = rows->pitch * rows->count;
    return true;
}

/* Whether a rule could have taken the memory. */
static bool is_for_learning(const struct gps_allocation *asked) {
    return asked->shareable && !(asked->pooled && gps_stream_is_capturing(asked->stream));
}

/* Ends a region whose address the driver gave again: an unhooked call has freed it. */
__attribute__((cold)) static void end_lost(struct gps_export *region) {
    GPS_SCOPE();
    gps_export_end(region);
}

static void allocation_record(uint64_t pointer, uint64_t size) {
    struct gps_alloc alloc = {
        .pointer = pointer, .size = size, .era = gps_registry_era(), .trace = gps_trace_kept()};
    int device = -1;
    gps_ops->context(&alloc.context);
    if (alloc.trace) {
        gps_ops->device(&device);
        gps_vmm_fabric_forget();
    }
    alloc.device = (int16_t)device;
    struct gps_export *lost = gps_registry_add(&alloc);
    if (lost)
        end_lost(lost);
}

static uint64_t allocation_bytes(const struct gps_allocation *asked) {
    return asked->rows ? asked->rows->count * asked->rows->pitch : asked->size;
}

/* True: a rule has given the memory, or *code says why not. */
__attribute__((noinline)) static bool allocate_by_rule(struct gps_allocation *asked, int *code) {
    uint64_t size;
    if (!asked->shareable || !is_for_rules(asked, &size))
        return false;
    if (gps_capture_forbids(code))
        return true;
    if (gps_merge_active)
        gps_plain_look_and_make();
    return gps_rules_allocate(size, asked->pooled, &asked->pointer, code);
}

int gps_memory_allocate(struct gps_allocation *asked) {
    int code;
    if (gps_rules_active && allocate_by_rule(asked, &code))
        return code;
    code = GPS_WITH_RECLAIM(asked->call(asked));
    if (code == GPS_OUT_OF_MEMORY && gps_learn_active)
        gps_learn_lacks();
    if (gps_rule_counts_active)
        gps_rule_counts_answer(code);
    if (code != GPS_OK)
        return code;
    if (asked->pooled && gps_process_audits())
        gps_pools_allocated(
            (struct gps_pool_pointer){.pointer = asked->pointer, .size = asked->size},
            asked->stream);
    else if (asked->pooled) /* no handle can name memory of a pool: it is the driver's alone */
        gps_freed_forget(GPS_FREED_MEMORY, asked->pointer);
    else
        allocation_record(asked->pointer, allocation_bytes(asked));
    if (gps_learn_active && is_for_learning(asked))
        gps_learn_allocated(asked->pointer, allocation_bytes(asked), asked->pooled);
    return GPS_OK;
}

/* --- memory that the program has freed, and that other processes still hold --- */

bool gps_memory_export_denied(uint64_t pointer, int *code) {
    uint64_t base;
    if (!gps_deferred_find(pointer, &base))
        return false;
    const struct gps_answer answer = gps_answer_on(GPS_ASK_EXPORT, GPS_KNOWN_DEFERRED);
    if (answer.verdict != GPS_DENY)
        return false;
    gps_diagnose_freed(pointer, base, answer.finding, "the memory was freed before");
    *code = answer.code;
    return true;
}

/* --- where a free takes any address of the memory --- */

/* Frees an import: as with the driver, that closes the program's open, but never a rule's. */
static int free_import(uint64_t pointer, uint64_t base) {
    struct gps_import import;
    gps_diagnose_pointer(GPS_ASK_FREED, pointer, GPS_INVALID_VALUE);
    return gps_registry_close(base, GPS_VIA_PROGRAM, false, &import) == GPS_CLOSE_ONE
               ? gps_import_close(&import, GPS_VIA_PROGRAM, gps_ops->release)
               : GPS_INVALID_VALUE;
}

static int free_interior(uint64_t pointer, uint64_t base, const struct gps_release *release) {
    const struct gps_answer answer = gps_answer_on(GPS_ASK_FREE, GPS_KNOWN_INTERIOR);
    gps_diagnose_pointer(GPS_ASK_FREED, pointer, GPS_INVALID_VALUE);
    return answer.verdict == GPS_DENY ? answer.code : gps_memory_free(base, release);
}

/* Whether the driver would free, or close, memory that the registry has by another address. */
static bool free_by_range(uint64_t pointer, const struct gps_release *release, int *code) {
    struct gps_import import;
    struct gps_alloc alloc;
    uint64_t base;
    if (!gps_address_is_inside(pointer, &base))
        return false;
    if (gps_registry_import_at(base, &import))
        *code = free_import(pointer, base);
    else if (base != pointer && gps_registry_find(base, &alloc))
        *code = free_interior(pointer, base, release);
    else
        return false;
    return true;
}

/* Not an allocation of ours: null, freed already, of a kind we do not track, or nothing at all. */
__attribute__((cold, noinline)) static int free_unknown(uint64_t pointer,
                                                        const struct gps_release *release) {
    uint64_t base;
    int code;
    if (gps_deferred_free_left(pointer))
        return GPS_OK;
    const bool deferred =
        gps_deferred_find(pointer, &base) && (base == pointer || gps_ops->by_range);
    const struct gps_answer answer =
        gps_answer_on(GPS_ASK_FREE, deferred ? GPS_KNOWN_DEFERRED : GPS_KNOWN_NOTHING);
    if (answer.verdict == GPS_DENY) {
        gps_diagnose_freed(pointer, base, answer.finding, NULL);
        return answer.code;
    }
    if (free_by_range(pointer, release, &code))
        return code;
    code = gps_pools_free(pointer, release);
    if (code != GPS_OK && code != GPS_DEINITIALIZED && !gps_call.told)
        gps_diagnose_pointer(GPS_ASK_FREED, pointer, code);
    return code;
}

/* --- allocations --- */

/* The allocation is out of the registry by now: once the driver has freed it, another thread can
 * have the address. A driver that has shut down has freed everything. */
static int free_private(const struct gps_alloc *alloc, const struct gps_release *release) {
    gps_freed_note_allocation(alloc, gps_trace_kept());
    const int code = release->call(alloc->pointer, release->stream);
    if (code != GPS_OK && code != GPS_DEINITIALIZED)
        gps_registry_add(alloc);
    return code;
}

/* Whether the driver decides: in a capture, which may forbid the free, or without a context. */
static bool is_for_driver(const struct gps_release *release) {
    bool captured = false;
    if (!release->ordered)
        return false;
    const int code = gps_ops->capturing((uintptr_t)release->stream, &captured);
    return captured || code == GPS_INVALID_CONTEXT || gps_code_is_of_capture(code);
}

static bool free_on_stream(const struct gps_alloc *alloc, const struct gps_release *release) {
    GPS_DRIVER_SCOPE();
    if (!gps_merge_free_ordered(alloc->pointer, (uintptr_t)release->stream))
        return false;
    gps_merge_end_freed(
        GPS_MERGE_IF_ENDED); /* its stream may be idle, and no other call come soon */
    return true;
}

static int free_at_once(const struct gps_alloc *alloc) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    code = code == GPS_OK ? gps_merge_free(alloc->pointer) : code;
    gps_scope_end(&scope);
    return code;
}

static int free_merged(const struct gps_alloc *alloc, const struct gps_release *release) {
    int code = GPS_OK;
    gps_freed_note_allocation(alloc, gps_trace_kept());
    gps_token_end(alloc->pointer, alloc->size, 0);
    if (!release->ordered || !free_on_stream(alloc, release))
        code = free_at_once(alloc);
    gps_token_end(alloc->pointer, alloc->size, 0); /* a token that was made meanwhile */
    gps_work_checked(code);
    if (code != GPS_OK)
        gps_registry_add(alloc);
    return code;
}

/* The padding of the memory stays as long as the memory does. */
static int free_shared(const struct gps_alloc *alloc, const struct gps_release *release) {
    const uint64_t extent = gps_padding_remove(alloc->pointer, alloc->size);
    const int code = alloc->kind == GPS_ALLOC_IMPORTED ? gps_import_free(alloc)
                     : alloc->region->vmm              ? gps_export_free_vmm(alloc)
                                                       : gps_close_before_free(alloc, *release);
    if (code != GPS_OK) {
        GPS_SCOPE();
        gps_padding_add(alloc->pointer, alloc->size, extent);
    }
    return code;
}

/* Memory that other processes may have is not freed where a capture forbids that, nor on a stream
 * that takes no free of it. */
static bool release_is_refused(const struct gps_alloc *alloc, const struct gps_release *release,
                               int *code) {
    if (alloc->kind == GPS_ALLOC_PLAIN)
        return false;
    const bool for_driver = is_for_driver(release);
    if (!for_driver && gps_alloc_is_drivers(alloc))
        return false;
    *code = release->call(for_driver ? alloc->pointer : 0, release->stream);
    return for_driver || gps_code_is_of_capture(*code);
}

static int free_one(uint64_t pointer, const struct gps_release *release) {
    struct gps_alloc alloc;
    int code;
    if (!pointer)
        return release->call(pointer, release->stream);
    if (gps_learn_active)
        gps_learn_freed(pointer);
    if (!gps_registry_take(pointer, &alloc))
        return free_unknown(pointer, release);
    if (release_is_refused(&alloc, release, &code)) {
        gps_registry_add(&alloc);
        return code;
    }
    switch (alloc.kind) {
    case GPS_ALLOC_EXPORTED:
    case GPS_ALLOC_IMPORTED:
        return free_shared(&alloc, release);
    case GPS_ALLOC_MERGED:
        return free_merged(&alloc, release);
    default:
        return free_private(&alloc, release);
    }
}

void gps_memory_freed_late(uint64_t pointer) {
    struct gps_alloc alloc;
    if (gps_registry_find(pointer, &alloc) && alloc.kind == GPS_ALLOC_PLAIN)
        gps_registry_take(pointer, &alloc);
}

static int framed_region_unmap(uint64_t pointer, void *stream) {
    (void)stream;
    return gps_ops->release(pointer);
}

/* A reader's buffer, and then the region that its frames came from. */
static int free_framed(uint64_t pointer, const struct gps_release *release) {
    static const struct gps_release region = {.call = framed_region_unmap};
    int code;
    if (gps_capture_forbids(&code))
        return code;
    const uint64_t mapping = gps_frames_freed(pointer);
    code = free_one(pointer, release);
    if (mapping)
        free_one(mapping, &region);
    return code;
}

int gps_memory_free(uint64_t pointer, const struct gps_release *release) {
    return gps_frames_near(pointer, 1) ? free_framed(pointer, release) : free_one(pointer, release);
}

/* --- questions about memory --- */

void gps_memory_attributes(uint64_t address) {
    if (gps_gate_state & GPS_GATE_BACK && gps_area_near(address, 1))
        gps_merge_back_all();
}

bool gps_memory_was_swapped(uint64_t address) {
    const enum gps_place_kind kind = gps_at(address).kind;
    if (kind != GPS_PLACE_MERGED && kind != GPS_PLACE_CREATED)
        return false;
    GPS_SCOPE();
    gps_swap_lock();
    gps_swap_unlock();
    return true;
}

int gps_memory_sync(const struct gps_write *all, bool synced) {
    struct gps_gate_pass pass;
    int code;
    if (gps_at(all->to).kind == GPS_PLACE_OPENED) {
        gps_mirror_set_synced(all->to, synced);
        return GPS_OK;
    }
    if (!gps_writes_begin(all, &pass, &code))
        return code;
    gps_writes_end(all, &pass, GPS_OK);
    GPS_SCOPE();
    gps_work_set_synced(all->to, synced);
    return GPS_OK;
}

uint64_t gps_memory_available(uint64_t available) {
    return gps_steady_free(available);
}
