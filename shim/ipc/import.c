/* import.c - see import.h. */
#include "import.h"

#include <errno.h>
#include <string.h>

#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "open_cache.h"
#include "pid_collision.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

static void hold(struct gps_import *import) {
    gps_report_reference(gps_references_begin(&import->region, import->via, &import->slot));
}

static void hold_committed(const struct gps_import *import) {
    gps_report_reference(gps_references_commit(import->slot, &import->region, import->via,
                                               import->pointer, import->generation));
    gps_region_event_opened(import);
}

/* What was cached, and opened by the driver after all, has a slot. */
static bool is_new(const struct gps_import *import) {
    return import->count == 1 && !import->revived;
}

static void let_go(unsigned slot) {
    gps_report_reference(gps_references_end(slot));
}

/* Or this open would count as one more of it, and end with it. */
static void bury_dead(const struct gps_import *import) {
    struct gps_import dead;
    struct gps_scope scope;
    if (!gps_registry_take_dead(import, &dead))
        return;
    gps_scope_begin(&scope);
    gps_region_event_closed(&dead, true);
    gps_open_cache_forget(&dead);
    let_go(dead.slot);
    gps_scope_end(&scope);
}

/* After an open: also by the cache, if it had that. */
static int record_open(struct gps_import *import, enum gps_slot_via via) {
    bury_dead(import);
    if (gps_open_cache_active)
        gps_open_cache_opened(import);
    const int status = gps_registry_open(import, via);
    if (status == 0 && import->revived)
        gps_open_cache_revived(import);
    return status;
}

/* --- opening --- */

static void take_record(struct gps_opening *opening) {
    const char *why = NULL;
    const int status = gps_membership_store()
                           ? gps_region_read(gps_membership_store(), &opening->import.region,
                                             &opening->record, &why)
                           : -ENOENT;
    if (status == -EBADMSG)
        gps_report_record(&opening->import.region, why);
    else if (status < 0 && status != -ENOENT)
        gps_report_store(status, "a region's record could not be read");
    opening->recorded = status == 0;
    if (!opening->recorded)
        return;
    opening->import.exporter =
        (struct gps_party){*gps_record_creator(&opening->record), opening->record.created};
    opening->import.generation = opening->record.generation;
    opening->import.size = opening->record.requested;
    opening->import.vmm = opening->record.backing == GPS_BACKING_VMM;
    memcpy(opening->import.name, opening->record.name, GPS_NAME_BYTES);
}

static void report_open(const struct gps_opening *opening) {
    struct gps_report report = gps_report_new(opening->finding);
    struct gps_import import = opening->import;
    if (import.count == 1)
        import.trace = GPS_NO_TRACE; /* it is this very call's */
    gps_report_about_import(&report, &import);
    gps_report_send_with(&report, opening->recorded ? &opening->record : NULL);
}

static struct gps_answer ask(enum gps_ask what, enum gps_known known) {
    return gps_policy(&(struct gps_question){
        .ask = what, .known = known, .mode = gps_process_config()->options.mode});
}

/* Without a context, or of one's own, the driver's codes are the program's to get. */
static bool is_stale(const struct gps_opening *opening) {
    return gps_record_over(&opening->record) && opening->import.context &&
           !gps_process_is_self(&opening->record.owner);
}

/* Written intent, then read state: never the other way round. */
static struct gps_answer ask_first(struct gps_opening *opening) {
    hold(&opening->import);
    take_record(opening);
    return ask(GPS_ASK_OPEN, !opening->recorded  ? GPS_KNOWN_NOTHING
                             : is_stale(opening) ? GPS_KNOWN_STALE
                                                 : GPS_KNOWN_LIVE);
}

bool gps_import_begin(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                      bool may_count) {
    struct gps_import *import = &opening->import;
    bool counts = false;
    import->region = gps_id_of_handle(handle);
    import->context = 0;
    gps_ops->context(&import->context);
    opening->open =
        !gps_vmm_region_is_token(handle) &&
        gps_registry_opened(&import->region, import->context, import, may_count ? &counts : NULL);
    return counts;
}

/* A driver counts the opens of its handles. A token is counted here, at once: the look and the
 * count are one, or another thread's last close could come in between. */
static bool is_open(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    const struct gps_id region = opening->import.region;
    if (!gps_vmm_region_is_token(handle))
        return opening->open;
    opening->counted = gps_registry_reopen(&region, opening->import.context, &opening->import);
    return opening->counted;
}

bool gps_import_prepare(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                        int *code) {
    opening->recorded = opening->counted = opening->unsaid = false;
    if (is_open(opening, handle)) {
        opening->unsaid = opening->import.slot == GPS_NO_SLOT;
        opening->import.slot = GPS_NO_SLOT; /* the slot stays with the first open */
        opening->finding = ask(GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE).finding;
        return true;
    }
    opening->import = (struct gps_import){.region = opening->import.region,
                                          .context = opening->import.context,
                                          .slot = GPS_NO_SLOT,
                                          .via = GPS_VIA_PROGRAM,
                                          .device = -1};
    struct gps_scope scope;
    gps_scope_begin(&scope);
    memcpy(opening->import.handle, handle, GPS_HANDLE_BYTES);
    const struct gps_answer answer = ask_first(opening);
    opening->finding = answer.finding;
    if (answer.verdict == GPS_DENY) {
        let_go(opening->import.slot);
        report_open(opening);
        *code = answer.code;
    }
    gps_scope_end(&scope);
    return answer.verdict != GPS_DENY;
}

static void commit_first(struct gps_opening *opening) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (is_new(&opening->import)) {
        if (opening->recorded && opening->record.status.state == GPS_STATE_FINAL)
            gps_region_take(gps_membership_store(), &opening->import.region);
        hold_committed(&opening->import);
        gps_open_cache_admit(&opening->import);
    } else {
        let_go(opening->import.slot); /* another thread opened it at the same time */
    }
    if (opening->finding != GPS_NO_FINDING)
        report_open(opening);
    gps_scope_end(&scope);
}

/* Another thread closed it for the last time between our look and our open: it is a first open
 * again. Or the first could not be published. */
static void slot_late(struct gps_import *import) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    hold(import);
    hold_committed(import);
    if (gps_registry_set_slot(import->pointer, import->slot))
        gps_open_cache_admit(import);
    else
        let_go(import->slot); /* closed again already, or another thread was faster */
    import->slot = GPS_NO_SLOT;
    gps_scope_end(&scope);
}

static void note_opened(struct gps_import *import) {
    import->epoch = gps_registry_now();
    import->trace = gps_trace_kept();
    gps_ops->device(&import->device);
    gps_freed_forget(GPS_FREED_IMPORT, import->pointer);
}

void gps_import_commit(struct gps_opening *opening, uint64_t pointer) {
    struct gps_import *import = &opening->import;
    /* A token's first open is counted already. */
    const bool first = import->count == (opening->counted ? 1 : 0);
    import->pointer = pointer;
    if (first && !opening->counted)
        note_opened(import);
    if (!opening->counted)
        record_open(import, GPS_VIA_PROGRAM);
    if (!first && (import->count == 1 || opening->unsaid))
        slot_late(import);
    if (first || (import->count > 1 && !import->reopened))
        commit_first(opening);
}

/* It could not be recorded. */
static void undo_open(const struct gps_import *import) {
    if (import->vmm) {
        gps_mapping_close(import->pointer);
        gps_vmm_region_released(&import->region);
    } else {
        gps_ops->close_handle(import->pointer);
    }
}

struct attempt {
    const struct gps_opening *opening;
    uint64_t size, *pointer;
};

static int open_once(void *arg) {
    const struct attempt *of = arg;
    const struct gps_import *import = &of->opening->import;
    const int code = import->vmm ? gps_vmm_region_open(&of->opening->record, of->size, of->pointer)
                                 : gps_ops->open_handle(import->handle, of->pointer);
    return code == GPS_INVALID_CONTEXT ? gps_pid_collision_open(import, of->pointer) : code;
}

int gps_import_by_rule(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    struct gps_opening opening = {.finding = GPS_NO_FINDING};
    struct gps_import *import = &opening.import;
    *import = (struct gps_import){.region = record->id, .via = GPS_VIA_RULE, .device = -1};
    memcpy(import->handle, record->handle, GPS_HANDLE_BYTES);
    gps_ops->context(&import->context);
    hold(import);
    take_record(&opening);
    if (!opening.recorded || gps_record_over(&opening.record) ||
        opening.record.generation != record->generation) {
        let_go(import->slot);
        return -1;
    }
    import->size = size;
    struct attempt attempt = {&opening, size, &import->pointer};
    int code = gps_open_cache_beside(open_once, &attempt, &import->region);
    if (code == GPS_OK) {
        note_opened(import);
        code = record_open(import, GPS_VIA_RULE);
        if (code < 0)
            undo_open(import);
    }
    if (code != GPS_OK) {
        let_go(import->slot);
        return code;
    }
    if (opening.record.status.state == GPS_STATE_FINAL)
        gps_region_take(gps_membership_store(), &import->region);
    if (is_new(import))
        hold_committed(import);
    else
        let_go(import->slot);
    *pointer = import->pointer;
    return GPS_OK;
}

/* --- tokens: what the driver does with a handle, done here --- */

static int open_vmm(struct gps_opening *opening, uint64_t *pointer) {
    struct gps_import *import = &opening->import;
    struct gps_scope scope;
    gps_scope_enter(&scope, 0);
    int code = gps_vmm_region_open(&opening->record, opening->record.requested, &import->pointer);
    if (code == GPS_OK) {
        note_opened(import);
        code = gps_registry_open(import, GPS_VIA_PROGRAM);
        opening->counted = code == GPS_OK;
        if (code < 0)
            undo_open(import);
        *pointer = import->pointer;
    }
    if (code < 0 && code != -ENOENT)
        gps_report_store(code, "the memory of a token could not be had from the keeper");
    gps_scope_end(&scope);
    return code == -ENOMEM ? GPS_OUT_OF_MEMORY : code < 0 ? GPS_INVALID_VALUE : code;
}

/* Of an own handle as of legacy ones, while the memory is here. */
int gps_import_token(struct gps_opening *opening, unsigned flags, uint64_t *pointer) {
    if (flags != GPS_OPEN_FLAGS)
        return GPS_INVALID_VALUE;
    if (!opening->import.context)
        return gps_context_code();
    if (gps_mapping_has(&opening->import.region))
        return GPS_INVALID_CONTEXT;
    if (opening->counted) { /* it is open here: the same address again */
        *pointer = opening->import.pointer;
        return GPS_OK;
    }
    if (!opening->recorded || !opening->import.vmm)
        return GPS_INVALID_VALUE;
    return open_vmm(opening, pointer);
}

bool gps_import_handle(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_alloc alloc;
    struct gps_import import;
    if (!gps_registry_find(pointer, &alloc) || alloc.kind != GPS_ALLOC_IMPORTED ||
        !gps_registry_import_at(pointer, &import))
        return false;
    memcpy(handle, import.handle, GPS_HANDLE_BYTES);
    return true;
}
