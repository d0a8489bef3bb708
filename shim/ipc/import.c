#include "import.h"

#include <errno.h>
#include <string.h>

#include "directory/region.h"
#include "directory/token_handle.h"
#include "driver/driver_ops.h"
#include "driver/passing.h"
#include "driver/scope.h"
#include "findings/leaks.h"
#include "findings/reporter.h"
#include "import_slot.h"
#include "pid_collision.h"
#include "process/membership.h"
#include "process/past.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/closed_ranges.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "vmm/mapping.h"
#include "vmm/mirror.h"
#include "vmm/vmm_region.h"

/* An import is over, and removed from the registry. */
static void import_end(const struct gps_import *import, bool with_context) {
    gps_open_cache_forget(import);
    gps_import_slot_end(import, with_context);
}

/* Records the import after an open by the driver. An enum gps_open, or -errno. */
static int record_open(struct gps_import *import, enum gps_slot_via via) {
    struct gps_previous previous;
    const int status = gps_registry_open(import, via, &previous);
    if (!previous.over && !previous.extra)
        return status;
    GPS_DRIVER_SCOPE();
    if (previous.extra)
        gps_ops->close_handle(import->pointer);
    if (previous.over)
        import_end(&previous.import, previous.import.context != import->context);
    else
        gps_import_slot_correct(import->pointer);
    return status;
}

/* --- prepare --- */

/* A first open: the intent, and what the record says after it. */
static void intend(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                   enum gps_slot_via via) {
    struct gps_import *import = &opening->import;
    const struct gps_region_record *record = &opening->record;
    const struct gps_id region = import->region;
    const uint64_t context = import->context;
    const char *why = NULL;
    *import = (struct gps_import){.region = region, .context = context, .via = via, .device = -1};
    memcpy(import->handle, handle, GPS_HANDLE_BYTES);
    const int status = gps_import_slot_begin(import, &opening->record, &why);
    opening->stage = GPS_OPENING_INTENDED;
    opening->status = status;
    if (status == -EBADMSG)
        gps_report_record(&import->region, why);
    else if (status < 0 && status != -ENOENT)
        gps_report_store(status, "a region's record could not be read");
    if (status != 0)
        return;
    import->exporter =
        (struct gps_party){.owner = *gps_record_creator(record), .since = record->created};
    import->generation = record->generation;
    import->size = record->requested;
    import->device = gps_peers_ordinal(record->device);
    import->vmm = record->backing != GPS_BACKING_IPC;
    import->mirrored = record->backing == GPS_BACKING_RUN;
    memcpy(import->name, record->name, GPS_NAME_BYTES);
}

/* `trace` is that of an earlier open. */
static void opening_report(const struct gps_opening *opening, uint32_t trace) {
    struct gps_report report = gps_report_new(opening->finding);
    struct gps_import import = opening->import;
    import.trace = trace;
    gps_report_about_import(&report, &import);
    gps_report_send_with(&report, gps_opening_record(opening));
}

/* Without a context, or for a region of its own, the program gets the driver's code. */
static enum gps_known opening_known(const struct gps_opening *opening) {
    const struct gps_region_record *record = gps_opening_record(opening);
    if (!record)
        return GPS_KNOWN_NOTHING;
    return gps_record_over(record) && opening->import.context &&
                   !gps_process_is_self(&record->owner)
               ? GPS_KNOWN_STALE
               : GPS_KNOWN_LIVE;
}

void gps_import_begin(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    opening->import.region = gps_id_of_handle(handle);
    opening->import.context = 0;
    gps_ops->context(&opening->import.context);
}

/* A driver counts the opens of its handles. A token is counted here, at once: it is found and
 * counted in one step, or another thread's last close could come in between. */
static bool import_is_open(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    const bool is_token = gps_token_is(handle);
    struct gps_import *import = &opening->import;
    if (!gps_registry_opened(&import->region, import->context, is_token, import))
        return false;
    opening->stage = is_token ? GPS_OPENING_COUNTED : GPS_OPENING_AGAIN;
    opening->status = -EALREADY;
    return true;
}

int gps_import_prepare(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    if (import_is_open(opening, handle)) {
        opening->finding = gps_answer_on(GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE).finding;
        return GPS_OK;
    }
    GPS_SCOPE();
    intend(opening, handle, GPS_VIA_PROGRAM);
    const struct gps_answer answer = gps_answer_on(GPS_ASK_OPEN, opening_known(opening));
    opening->finding = answer.finding;
    if (answer.verdict == GPS_DENY) {
        gps_import_slot_drop(opening->import.slot);
        opening_report(opening, GPS_NO_TRACE);
    }
    return answer.code;
}

/* --- tokens: what the driver does with a handle, done here --- */

/* Memory is open in one context of a card at a time, as the driver has it. */
static bool is_open_elsewhere(const struct gps_import *import, uint64_t pointer) {
    struct gps_import there;
    return gps_registry_import_at(pointer, &there) && there.context != import->context &&
           gps_ops->context_exists(there.context);
}

static int map_block(const struct gps_opening *opening, uint64_t *pointer) {
    const struct gps_import *import = &opening->import;
    struct gps_mapping mapping = {.pointer = 0};
    int device;
    if (gps_ops->device(&device) == GPS_OK)
        while (gps_mapping_next(&mapping))
            if (mapping.accessor == device && gps_id_equal(&mapping.region, &import->region) &&
                is_open_elsewhere(import, mapping.pointer))
                return GPS_INVALID_HANDLE;
    return gps_vmm_region_open(&opening->record, import->size, pointer);
}

/* The same for a pointer, which several tokens can give. */
static int map_run(const struct gps_opening *opening, uint64_t *pointer) {
    const int code = gps_mirror_open(&opening->record, pointer);
    if (code != GPS_OK || !is_open_elsewhere(&opening->import, *pointer))
        return code;
    gps_mirror_close(*pointer, &opening->import.region);
    return GPS_INVALID_HANDLE;
}

/* The code for a token without a region: its exporter has ended or has unmapped the memory, or
 * there never was such a token. */
static int code_of_none(const struct gps_opening *opening) {
    struct gps_owner exporter;
    GPS_SCOPE();
    return gps_past_code(gps_past_of(opening->import.handle, NULL, &exporter));
}

static int code_of(const struct gps_opening *opening, int status) {
    if (status >= 0)
        return status;
    GPS_SCOPE();
    if (opening->import.mirrored && status == -ECONNREFUSED)
        return gps_past_code(GPS_PAST_ENDED);
    if (status == -ENOENT)
        return code_of_none(opening);
    gps_report_store(status, status == -EBUSY ? "the exporter of a token is suspended"
                             : opening->import.mirrored
                                 ? "the memory of a token could not be had from its exporter"
                                 : "the memory of a token could not be had from the keeper");
    return status == -ENOMEM ? GPS_OUT_OF_MEMORY : GPS_INVALID_VALUE;
}

/* Whether the memory is this process's own, and still mapped here. Memory that the keeper holds
 * after its maker's free the maker may open, too. */
static bool opening_is_own(const struct gps_opening *opening) {
    return gps_process_is_self(gps_record_creator(&opening->record)) &&
           (opening->import.mirrored || gps_mapping_has(&opening->import.region));
}

int gps_import_token(const struct gps_opening *opening, unsigned flags, uint64_t *pointer) {
    if (flags != GPS_OPEN_FLAGS)
        return GPS_INVALID_VALUE;
    if (!opening->import.context)
        return gps_context_code();
    if (opening->stage == GPS_OPENING_COUNTED) { /* it is open here: the same address again */
        *pointer = opening->import.pointer;
        return GPS_OK;
    }
    if (opening->status == -ENOENT)
        return code_of_none(opening);
    if (opening->status != 0 || !opening->import.vmm)
        return GPS_INVALID_VALUE;
    if (opening_is_own(opening))
        return gps_past_code(GPS_PAST_OWN);
    GPS_DRIVER_SCOPE();
    return code_of(opening, opening->import.mirrored ? map_run(opening, pointer)
                                                     : map_block(opening, pointer));
}

/* --- commit --- */

/* Publishes an import late: another thread closed it for the last time between our look and our
 * open, so this is a first open again; or the first could not be published. */
static bool publish_late(struct gps_import *import) {
    struct gps_region_record record;
    const char *why;
    (void)gps_import_slot_begin(import, &record, &why);
    gps_import_slot_commit(import);
    if (gps_registry_set_slot(import->pointer, import->slot))
        return true;
    gps_import_slot_drop(import->slot); /* closed again already, or another thread was faster */
    return false;
}

static void note_opened(struct gps_import *import) {
    import->era = gps_registry_era();
    import->since = gps_process_audits() ? gps_clock_now() : 0;
    import->trace = gps_trace_kept();
    if (!import->exporter.owner.pid) /* it is not known where the memory is */
        gps_ops->device(&import->device);
    gps_freed_forget(GPS_FREED_IMPORT, import->pointer);
    if (gps_closed_looks)
        gps_closed_forget(import->pointer);
}

/* Unmaps an import that nothing uses any more, or yet. */
static int import_unmap(const struct gps_import *import) {
    return !import->vmm       ? gps_ops->close_handle(import->pointer)
           : import->mirrored ? gps_mirror_close(import->pointer, &import->region)
                              : gps_mapping_close(import->pointer);
}

/* 0, or -errno: an import that this library closes could not be recorded, and is closed. */
static int commit_first(struct gps_opening *opening, uint64_t pointer) {
    struct gps_import *import = &opening->import;
    import->pointer = pointer;
    note_opened(import);
    const int status = record_open(import, import->via);
    if (status < 0 && (import->vmm || import->via == GPS_VIA_RULE)) {
        GPS_DRIVER_SCOPE();
        import_unmap(import);
        return status;
    }
    GPS_SCOPE();
    if (status == GPS_OPEN_COUNTED) { /* another open has a slot */
        if (import->mirrored)
            gps_mirror_opened_again(pointer, &import->region);
        gps_import_slot_drop(import->slot);
    } else {
        if (opening->status == 0 && opening->record.status.state == GPS_STATE_FINAL)
            gps_region_take(gps_membership_store(), &import->region);
        gps_import_slot_commit(import);
        opening->stage = GPS_OPENING_PUBLISHED;
    }
    if (opening->finding != GPS_NO_FINDING)
        opening_report(opening, GPS_NO_TRACE);
    return 0;
}

/* Whether the memory is open at the address that it had before, too. If that import could not be
 * published before, it is now. */
static bool is_open_beside(const struct gps_import *import, uint64_t before, bool has_no_slot) {
    struct gps_import beside;
    if (import->pointer == before || !gps_registry_import_at(before, &beside) ||
        !gps_id_equal(&beside.region, &import->region))
        return false;
    if (has_no_slot)
        publish_late(&beside);
    return true;
}

/* The memory may have another address now: the driver does not count opens, but maps it once more,
 * or another thread has closed the first import meanwhile. */
static void commit_again(struct gps_opening *opening, uint64_t pointer) {
    struct gps_import *import = &opening->import;
    const uint64_t before = import->pointer;
    const uint32_t trace = import->trace;
    const bool is_moved = pointer != before, has_no_slot = import->slot == GPS_NO_SLOT;
    import->pointer = pointer;
    import->slot = GPS_NO_SLOT; /* the slot stays with the first open */
    if (is_moved)
        note_opened(import);
    if (opening->stage == GPS_OPENING_AGAIN)
        record_open(import, GPS_VIA_PROGRAM);
    const bool is_late = import->opens.open == 1 || (has_no_slot && !is_moved);
    bool is_double = is_moved || (import->opens.open > 1 && !import->opens.repeated);
    if (!is_late && !is_double)
        return;
    GPS_SCOPE();
    if (is_moved)
        is_double = is_open_beside(import, before, has_no_slot);
    if (is_late && publish_late(import))
        opening->stage = GPS_OPENING_PUBLISHED;
    if (is_double && opening->finding != GPS_NO_FINDING)
        opening_report(opening, trace);
}

int gps_import_commit(struct gps_opening *opening, uint64_t pointer) {
    if (opening->stage != GPS_OPENING_INTENDED) {
        commit_again(opening, pointer);
        return GPS_OK;
    }
    return code_of(opening, commit_first(opening, pointer));
}

void gps_import_roll_back(const struct gps_opening *opening) {
    struct gps_import import;
    if (opening->stage == GPS_OPENING_INTENDED) {
        GPS_SCOPE();
        gps_import_slot_drop(opening->import.slot);
    } else if (opening->stage == GPS_OPENING_COUNTED &&
               gps_registry_close(opening->import.pointer, GPS_VIA_PROGRAM, false, &import) ==
                   GPS_CLOSE_ONE) {
        gps_import_close(&import, GPS_VIA_PROGRAM, gps_ops->close_handle);
    }
}

/* --- by a rule --- */

static int open_for_rule(struct gps_opening *opening) {
    struct gps_import *import = &opening->import;
    const int code = import->vmm
                         ? gps_vmm_region_open(&opening->record, import->size, &import->pointer)
                         : gps_ops->open_handle(import->handle, &import->pointer);
    return code == GPS_INVALID_CONTEXT ? gps_pid_collision_open(import, &import->pointer) : code;
}

static int import_ask_driver(struct gps_opening *opening) {
    const bool caches = gps_open_cache_active;
    const unsigned endings = caches ? gps_open_cache_before_driver(&opening->import) : 0;
    const int code = open_for_rule(opening);
    return code != GPS_OK && caches && gps_open_cache_retry_after(code, &opening->import, endings)
               ? open_for_rule(opening)
               : code;
}

int gps_import_by_rule(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    struct gps_opening opening = {.import.region = record->id, .finding = GPS_NO_FINDING};
    struct gps_import *import = &opening.import;
    int code = -1;
    gps_ops->context(&import->context);
    intend(&opening, record->handle, GPS_VIA_RULE);
    import->size = size;
    if (opening.status == 0 && !gps_record_over(&opening.record) &&
        opening.record.generation == record->generation)
        code = import_ask_driver(&opening);
    if (code == GPS_OK)
        code = commit_first(&opening, import->pointer);
    if (code == GPS_OK)
        *pointer = import->pointer;
    else
        gps_import_slot_drop(import->slot);
    return code;
}

bool gps_import_handle(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_alloc alloc;
    struct gps_import import;
    if (!gps_registry_import_around(pointer, &import) ||
        !gps_registry_find(import.pointer, &alloc) || alloc.kind != GPS_ALLOC_IMPORTED)
        return false;
    memcpy(handle, import.handle, GPS_HANDLE_BYTES);
    return true;
}

/* --- closing --- */

/* After the driver's teardown the close fails, but the program has done its part. */
static bool is_closed(int code) {
    return code == GPS_OK || code == GPS_DEINITIALIZED;
}

/* The driver counts what it opened; a mapping of ours ends with the last close. */
static int close_vmm(const struct gps_import *import) {
    struct gps_scope scope;
    if (import->opens.open)
        return GPS_OK;
    int code = gps_context_code();
    if (code != GPS_OK)
        return code;
    code = gps_scope_enter(&scope, import->context);
    if (code == GPS_OK)
        code = gps_scope_synchronize();
    if (code == GPS_OK)
        code = import_unmap(import);
    gps_scope_end(&scope);
    return code;
}

static void note_closed(const struct gps_import *import, uint32_t trace, bool with_context) {
    if (gps_process_audits()) {
        gps_closed_note(import->pointer, import->size);
        gps_watch();
    }
    gps_freed_note(GPS_FREED_IMPORT, import->pointer,
                   (struct gps_freed){.born = import->trace,
                                      .ended = trace,
                                      .context = import->context,
                                      .size = import->size,
                                      .device = import->device,
                                      .with_context = with_context});
}

void gps_import_note_closed(const struct gps_import *import) {
    note_closed(import, gps_trace_kept(), false);
}

int gps_import_close(const struct gps_import *import, enum gps_slot_via via, gps_close_fn *close) {
    if (import->opens.open == 0)
        gps_import_note_closed(import);
    const int code = import->vmm ? close_vmm(import) : close(import->pointer);
    if (!is_closed(code)) {
        gps_freed_forget(GPS_FREED_IMPORT, import->pointer);
        gps_registry_unclose(import, via);
    } else if (import->opens.open == 0) {
        GPS_SCOPE();
        import_end(import, false);
    }
    return code;
}

static int close_rules(uint64_t pointer) {
    struct gps_import import;
    return gps_registry_close(pointer, GPS_VIA_RULE, false, &import) == GPS_CLOSE_ONE
               ? gps_import_close(&import, GPS_VIA_RULE, gps_ops->close_handle)
               : gps_ops->close_handle(pointer);
}

int gps_import_free(const struct gps_alloc *alloc) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK) {
        gps_freed_note_allocation(alloc, gps_trace_kept());
        gps_scope_synchronize(); /* as a free; the close reports what is wrong with the context */
        code = close_rules(alloc->pointer);
    }
    gps_scope_end(&scope);
    if (code != GPS_OK)
        gps_registry_add(alloc);
    return code;
}

void gps_import_purge(uint64_t context, uint32_t era, struct gps_reset *reset) {
    struct gps_import import;
    while (gps_registry_take_import_of(context, era, &import)) {
        if (import.vmm) { /* it would outlive its context */
            gps_scope_synchronize();
            import_unmap(&import);
        }
        import_end(&import, true);
        if (import.state != GPS_IMPORT_OPEN)
            continue; /* the program has closed it before */
        note_closed(&import, GPS_NO_TRACE, true);
        gps_leak_reset_import(reset, &import);
    }
}
