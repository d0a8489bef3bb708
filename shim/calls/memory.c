/* memory.c - see memory.h. */
#include "memory.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "findings/policy.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/import_close.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/write.h"
#include "process/process.h"
#include "registry/freed_history.h"
#include "stack/trace.h"

void gps_memory_allocated(uint64_t pointer, uint64_t size) {
    struct gps_alloc alloc = {
        .pointer = pointer, .size = size, .epoch = gps_registry_now(), .trace = gps_trace_kept()};
    int device = -1;
    gps_ops->context(&alloc.context);
    if (alloc.trace)
        gps_ops->device(&device);
    alloc.device = (int16_t)device;
    struct gps_export *lost = gps_registry_add(&alloc);
    if (!lost)
        return;
    struct gps_scope scope; /* a region was here: it was freed by a way that we do not see */
    if (gps_deferred_reclaim(lost) != GPS_RECLAIMED)
        return;
    gps_scope_begin(&scope);
    gps_export_end(lost);
    gps_scope_end(&scope);
}

/* --- memory that the program has freed, and that others still hold --- */

static struct gps_answer ask(enum gps_ask what, bool deferred) {
    return gps_policy(
        &(struct gps_question){.ask = what,
                               .known = deferred ? GPS_KNOWN_DEFERRED : GPS_KNOWN_NOTHING,
                               .mode = gps_process_config()->options.mode});
}

bool gps_memory_export_denied(uint64_t pointer, int *code) {
    uint64_t base;
    if (!gps_deferred_find(pointer, &base))
        return false;
    const struct gps_answer answer = ask(GPS_ASK_EXPORT, true);
    if (answer.verdict != GPS_DENY)
        return false;
    gps_diagnose_freed(pointer, base, answer.finding, "the memory was freed before");
    *code = answer.code;
    return true;
}

/* Not an allocation of ours: null, freed already, of a kind we do not track, or nothing at all. */
static int free_unknown(uint64_t pointer, struct gps_release release) {
    uint64_t base;
    const bool deferred = gps_deferred_find(pointer, &base) && base == pointer;
    const struct gps_answer answer = ask(GPS_ASK_FREE, deferred);
    if (answer.verdict == GPS_DENY) {
        gps_diagnose_freed(pointer, base, answer.finding, NULL);
        return answer.code;
    }
    const int code = release.call(pointer, release.stream);
    if (code != GPS_OK && code != GPS_DEINITIALIZED)
        gps_diagnose_free(pointer, code);
    return code;
}

/* --- allocations --- */

/* Out of the registry first: the moment the driver has freed it, another thread can have the
 * address. */
static int free_private(const struct gps_alloc *alloc, struct gps_release release) {
    gps_freed_note_allocation(alloc, gps_trace_kept());
    const int code = release.call(alloc->pointer, release.stream);
    if (code != GPS_OK)
        gps_registry_add(alloc);
    return code;
}

static int free_merged(const struct gps_alloc *alloc, bool ordered) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK) {
        gps_freed_note_allocation(alloc, gps_trace_kept());
        if (!ordered || !gps_merge_free_ordered(alloc->pointer))
            code = gps_merge_free(alloc->pointer);
    }
    gps_scope_end(&scope);
    gps_work_checked(code);
    if (code != GPS_OK)
        gps_registry_add(alloc);
    return code;
}

/* Beside the end of a process or a context a free may answer 0 and leave the memory to that. */
static int free_exported(const struct gps_alloc *alloc, struct gps_release release) {
    const enum gps_reclaim reclaimed = gps_deferred_reclaim(alloc->region);
    if (reclaimed == GPS_CLAIMED)
        gps_registry_add(alloc);
    if (reclaimed != GPS_RECLAIMED)
        return GPS_OK;
    return alloc->region->vmm ? gps_export_free_vmm(alloc) : gps_close_before_free(alloc, release);
}

int gps_memory_free(uint64_t pointer, struct gps_release release) {
    struct gps_alloc alloc;
    if (!pointer)
        return release.call(pointer, release.stream);
    gps_learn_freed(pointer);
    if (!gps_registry_take(pointer, &alloc))
        return free_unknown(pointer, release);
    switch (alloc.kind) {
    case GPS_ALLOC_EXPORTED:
        return free_exported(&alloc, release);
    case GPS_ALLOC_IMPORTED:
        return gps_import_free(&alloc);
    case GPS_ALLOC_MERGED:
        return free_merged(&alloc, release.ordered);
    default:
        return free_private(&alloc, release);
    }
}
