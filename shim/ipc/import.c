#include "import.h"

#include <errno.h>
#include <string.h>

#include "directory/region.h"
#include "directory/token_handle.h"
#include "driver/driver_ops.h"
#include "driver/passing.h"
#include "driver/scope.h"
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
static void end(const struct gps_import *import, bool with_context) {
    gps_open_cache_forget(import);
    gps_import_slot_end(import, with_context);
}

/* After an open by the driver. An enum gps_open, or -errno. */
static int record_open(struct gps_import *import, enum gps_slot_via via) {
    struct gps_previous previous;
    const int status = gps_registry_open(import, via, &previous);
    if (!previous.over && !previous.extra)
        return status;
    GPS_DRIVER_SCOPE();
    if (previous.extra)
        gps_ops->close_handle(import->pointer);
    if (previous.over)
        end(&previous.import, previous.import.context != import->context);
    else
        gps_import_slot_correct(import->pointer);
    return status;
}

/* --- opening --- */

/* The intent, and what the record says after it. */
static void begin(struct gps_opening *opening) {
    const char *why = NULL;
    const int status = gps_import_slot_begin(&opening->import, &opening->record, &why);
    if (status == -EBADMSG)
        gps_report_record(&opening->import.region, why);
    else if (status < 0 && status != -ENOENT)
        gps_report_store(status, "a region's record could not be read");
    opening->recorded = status == 0;
    opening->absent = status == -ENOENT;
    if (!opening->recorded)
        return;
    opening->import.exporter = (struct gps_party){.owner = *gps_record_creator(&opening->record),
                                                  .since = opening->record.created};
    opening->import.generation = opening->record.generation;
    opening->import.size = opening->record.requested;
    opening->import.device = gps_peers_ordinal(opening->record.device);
    opening->import.vmm = opening->record.backing != GPS_BACKING_IPC;
    opening->import.mirrored = opening->record.backing == GPS_BACKING_RUN;
    memcpy(opening->import.name, opening->record.name, GPS_NAME_BYTES);
}

/* `trace` is that of an earlier open. */
static void report_open(const struct gps_opening *opening, uint32_t trace) {
    struct gps_report report = gps_report_new(opening->finding);
    struct gps_import import = opening->import;
    import.trace = trace;
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

static struct gps_answer ask_first(struct gps_opening *opening) {
    begin(opening);
    return ask(GPS_ASK_OPEN, !opening->recorded  ? GPS_KNOWN_NOTHING
                             : is_stale(opening) ? GPS_KNOWN_STALE
                                                 : GPS_KNOWN_LIVE);
}

void gps_import_begin(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    opening->import.region = gps_id_of_handle(handle);
    opening->import.context = 0;
    opening->is_first = false;
    gps_ops->context(&opening->import.context);
}

/* A driver counts the opens of its handles. A token is counted here, at once: the look and the
 * count are one, or another thread's last close could come in between. */
static bool is_open(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES]) {
    const struct gps_id region = opening->import.region;
    if (!gps_token_is(handle))
        return gps_registry_opened(&region, opening->import.context, &opening->import);
    opening->counted = gps_registry_reopen(&region, opening->import.context, &opening->import);
    return opening->counted;
}

/* Writes the intent and reads the region's state. False: answer *code. */
static bool prepare(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                    int *code) {
    const struct gps_id region = opening->import.region;
    const uint64_t context = opening->import.context;
    opening->recorded = opening->absent = opening->counted = opening->has_no_slot = false;
    opening->published = opening->refused = false;
    if (!opening->is_first && is_open(opening, handle)) {
        opening->has_no_slot = opening->import.slot == GPS_NO_SLOT;
        opening->import.slot = GPS_NO_SLOT; /* the slot stays with the first open */
        opening->finding = ask(GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE).finding;
        return true;
    }
    opening->import = (struct gps_import){.region = region,
                                          .context = context,
                                          .slot = GPS_NO_SLOT,
                                          .via = GPS_VIA_PROGRAM,
                                          .device = -1};
    GPS_SCOPE();
    memcpy(opening->import.handle, handle, GPS_HANDLE_BYTES);
    const struct gps_answer answer = ask_first(opening);
    opening->finding = answer.finding;
    if (answer.verdict == GPS_DENY) {
        gps_import_slot_drop(opening->import.slot);
        report_open(opening, GPS_NO_TRACE);
        *code = answer.code;
    }
    return answer.verdict != GPS_DENY;
}

/* `is_new`: else another thread opened it at the same time, or it was cached, and has a slot. */
static bool publish(const struct gps_opening *opening, bool is_new) {
    if (!is_new) {
        gps_import_slot_drop(opening->import.slot);
        return false;
    }
    if (opening->recorded && opening->record.status.state == GPS_STATE_FINAL)
        gps_region_take(gps_membership_store(), &opening->import.region);
    gps_import_slot_commit(&opening->import);
    return true;
}

/* Another thread closed it for the last time between our look and our open: it is a first open
 * again. Or the first could not be published. */
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

/* Whether the memory is still open at another address, too. What could not be published of that is
 * published now. */
static bool is_open_beside(const struct gps_opening *opening, uint64_t other) {
    const struct gps_import *import = &opening->import;
    struct gps_import beside;
    if (!gps_registry_import_at(other, &beside) || !gps_id_equal(&beside.region, &import->region))
        return false;
    if (opening->has_no_slot)
        publish_late(&beside);
    return true;
}

/* It was open already, and has another address now: the driver does not count opens, but maps the
 * memory once more, or another thread has closed the first one meanwhile. */
__attribute__((cold, noinline)) static void commit_moved(struct gps_opening *opening,
                                                         uint64_t pointer) {
    struct gps_import *import = &opening->import;
    const uint64_t before = import->pointer;
    const uint32_t trace = import->trace;
    import->pointer = pointer;
    note_opened(import);
    record_open(import, GPS_VIA_PROGRAM);
    GPS_SCOPE();
    const bool beside = is_open_beside(opening, before);
    if (import->count == 1)
        opening->published = publish_late(import);
    if (beside && opening->finding != GPS_NO_FINDING)
        report_open(opening, trace);
}

static void commit(struct gps_opening *opening, uint64_t pointer) {
    struct gps_import *import = &opening->import;
    /* A token's first open is counted already. */
    const bool first = import->count == (opening->counted ? 1 : 0);
    int status = GPS_OPEN_FIRST;
    if (!first && import->pointer != pointer) {
        commit_moved(opening, pointer);
        return;
    }
    import->pointer = pointer;
    if (first && !opening->counted)
        note_opened(import);
    if (!opening->counted)
        status = record_open(import, GPS_VIA_PROGRAM);
    const bool late = !first && (import->count == 1 || opening->has_no_slot);
    const bool reports =
        opening->finding != GPS_NO_FINDING && (first || (import->count > 1 && !import->reopened));
    if (!first && !late && !reports)
        return;
    GPS_SCOPE();
    if (first)
        opening->published = publish(opening, import->count == 1 && status != GPS_OPEN_COUNTED);
    if (!first && late)
        opening->published = publish_late(import);
    if (reports)
        report_open(opening, first ? GPS_NO_TRACE : import->trace);
}

static int no_close(uint64_t pointer) {
    (void)pointer;
    return GPS_OK;
}

/* An open that was counted beforehand was none. */
static void uncount(uint64_t pointer) {
    struct gps_import import;
    if (gps_registry_close(pointer, GPS_VIA_PROGRAM, false, &import) == GPS_CLOSE_ONE)
        gps_import_close(&import, GPS_VIA_PROGRAM, no_close);
}

static void roll_back(struct gps_opening *opening) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_import_slot_drop(opening->import.slot);
    gps_scope_end(&scope);
    if (opening->counted)
        uncount(opening->import.pointer);
}

int gps_import_open(struct gps_opening *opening, const uint8_t handle[GPS_HANDLE_BYTES],
                    const uint64_t *pointer, gps_open_fn *open, void *arg) {
    int code;
    if (!prepare(opening, handle, &code))
        return code;
    code = gps_open_cache_ask_driver(open, arg, &opening->import);
    opening->refused = code != GPS_OK;
    if (opening->refused)
        roll_back(opening);
    else
        commit(opening, *pointer);
    return code;
}

/* Nothing uses it any more, or yet. */
static int unmap(const struct gps_import *import) {
    return import->mirrored ? gps_mirror_close(import->pointer, &import->region)
                            : gps_mapping_close(import->pointer);
}

/* An enum gps_open, or -errno: it could not be recorded, and nothing is open. */
static int record_or_close(struct gps_import *import, enum gps_slot_via via) {
    note_opened(import);
    const int status = record_open(import, via);
    if (status < 0 && import->vmm)
        unmap(import);
    else if (status < 0)
        gps_ops->close_handle(import->pointer);
    return status;
}

static int open_for_rule(void *arg) {
    struct gps_opening *opening = arg;
    struct gps_import *import = &opening->import;
    const int code = import->vmm
                         ? gps_vmm_region_open(&opening->record, import->size, &import->pointer)
                         : gps_ops->open_handle(import->handle, &import->pointer);
    return code == GPS_INVALID_CONTEXT ? gps_pid_collision_open(import, &import->pointer) : code;
}

/* Opens and records it. An enum gps_open, or -1 and a code of the driver's or -errno. */
static int open_and_record(struct gps_opening *opening, int *code) {
    struct gps_import *import = &opening->import;
    *code = gps_open_cache_ask_driver(open_for_rule, opening, import);
    if (*code != GPS_OK)
        return -1;
    const int status = record_or_close(import, GPS_VIA_RULE);
    if (status < 0)
        *code = status;
    return status;
}

int gps_import_by_rule(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    struct gps_opening opening = {.finding = GPS_NO_FINDING};
    struct gps_import *import = &opening.import;
    int code = -1, status = -1;
    *import = (struct gps_import){.region = record->id, .via = GPS_VIA_RULE, .device = -1};
    memcpy(import->handle, record->handle, GPS_HANDLE_BYTES);
    gps_ops->context(&import->context);
    begin(&opening);
    import->size = size;
    if (opening.recorded && !gps_record_over(&opening.record) &&
        opening.record.generation == record->generation)
        status = open_and_record(&opening, &code);
    if (status < 0) {
        gps_import_slot_drop(import->slot);
        return code;
    }
    publish(&opening, status == GPS_OPEN_FIRST);
    *pointer = import->pointer;
    return GPS_OK;
}

/* --- tokens: what the driver does with a handle, done here --- */

/* Memory is open in one context of a card at a time, as the driver has it. */
static bool is_open_there(const struct gps_import *import) {
    struct gps_mapping mapping = {.pointer = 0};
    struct gps_import there;
    int device;
    if (gps_ops->device(&device) != GPS_OK)
        return false;
    while (gps_mapping_next(&mapping))
        if (mapping.accessor == device && gps_id_equal(&mapping.region, &import->region) &&
            gps_registry_import_at(mapping.pointer, &there) && there.context != import->context &&
            gps_ops->context_exists(there.context))
            return true;
    return false;
}

/* The same of a pointer, which several tokens can give. */
static int open_run(const struct gps_opening *opening, uint64_t *pointer) {
    struct gps_import there;
    const int code = gps_mirror_open(&opening->record, pointer);
    if (code != GPS_OK || !gps_registry_import_at(*pointer, &there) ||
        there.context == opening->import.context || !gps_ops->context_exists(there.context))
        return code;
    gps_mirror_close(*pointer, &opening->import.region);
    return GPS_INVALID_HANDLE;
}

/* The open of another token has this address, and a slot: this one needs none. */
static void count_with_another(struct gps_import *import) {
    gps_mirror_opened_again(import->pointer, &import->region);
    gps_import_slot_drop(import->slot);
    import->slot = GPS_NO_SLOT;
}

static int map_token(const struct gps_opening *opening, uint64_t *pointer) {
    if (opening->import.mirrored)
        return open_run(opening, pointer);
    return is_open_there(&opening->import)
               ? GPS_INVALID_HANDLE
               : gps_vmm_region_open(&opening->record, opening->record.requested, pointer);
}

/* Whoever had the memory has it no more, or it never was: the token alone says which. */
static int code_of_none(const struct gps_opening *opening) {
    struct gps_owner exporter;
    return gps_past_code(gps_past_of(opening->import.handle, NULL, &exporter));
}

static int answer_of(const struct gps_opening *opening, int code) {
    if (code >= 0)
        return code;
    if (opening->import.mirrored && code == -ECONNREFUSED)
        return gps_past_code(GPS_PAST_ENDED);
    if (code == -ENOENT)
        return code_of_none(opening);
    gps_report_store(code, code == -EBUSY ? "the exporter of a token is suspended"
                           : opening->import.mirrored
                               ? "the memory of a token could not be had from its exporter"
                               : "the memory of a token could not be had from the keeper");
    return code == -ENOMEM ? GPS_OUT_OF_MEMORY : GPS_INVALID_VALUE;
}

static int open_vmm(struct gps_opening *opening, uint64_t *pointer) {
    struct gps_import *import = &opening->import;
    GPS_DRIVER_SCOPE();
    int code = map_token(opening, &import->pointer);
    if (code == GPS_OK) {
        const int status = record_or_close(import, GPS_VIA_PROGRAM);
        opening->counted = status >= 0;
        code = opening->counted ? GPS_OK : status;
        *pointer = import->pointer;
        if (status == GPS_OPEN_COUNTED && import->mirrored)
            count_with_another(import);
    }
    return answer_of(opening, code);
}

/* While the memory is here. What the keeper has on after its maker's free, that may open, too. */
static bool is_own(const struct gps_opening *opening) {
    return gps_process_is_self(gps_record_creator(&opening->record)) &&
           (opening->import.mirrored || gps_mapping_has(&opening->import.region));
}

static int refuse_absent(const struct gps_opening *opening) {
    GPS_SCOPE();
    return code_of_none(opening);
}

int gps_import_token(struct gps_opening *opening, unsigned flags, uint64_t *pointer) {
    if (flags != GPS_OPEN_FLAGS)
        return GPS_INVALID_VALUE;
    if (!opening->import.context)
        return gps_context_code();
    if (opening->counted) { /* it is open here: the same address again */
        *pointer = opening->import.pointer;
        return GPS_OK;
    }
    if (opening->absent)
        return refuse_absent(opening);
    if (!opening->recorded || !opening->import.vmm)
        return GPS_INVALID_VALUE;
    return is_own(opening) ? gps_past_code(GPS_PAST_OWN) : open_vmm(opening, pointer);
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
    if (import->count)
        return GPS_OK;
    int code = gps_context_code();
    if (code != GPS_OK)
        return code;
    code = gps_scope_enter(&scope, import->context);
    if (code == GPS_OK)
        code = gps_scope_synchronize();
    if (code == GPS_OK)
        code = unmap(import);
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
    if (import->count == 0)
        gps_import_note_closed(import);
    const int code = import->vmm ? close_vmm(import) : close(import->pointer);
    if (!is_closed(code)) {
        gps_freed_forget(GPS_FREED_IMPORT, import->pointer);
        gps_registry_unclose(import, via);
    } else if (import->count == 0) {
        GPS_SCOPE();
        end(import, false);
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

struct purge {
    void (*fn)(void *arg, const struct gps_import *import);
    void *arg;
};

static void purge_one(void *arg, const struct gps_import *import) {
    const struct purge *purge = arg;
    if (import->vmm) { /* it would outlive its context */
        gps_scope_synchronize();
        unmap(import);
    }
    end(import, true);
    if (import->state != GPS_IMPORT_OPEN)
        return; /* the program has closed it before */
    note_closed(import, GPS_NO_TRACE, true);
    if (purge->fn)
        purge->fn(purge->arg, import);
}

void gps_import_purge(uint64_t context, uint32_t era,
                      void (*fn)(void *arg, const struct gps_import *import), void *arg) {
    struct purge purge = {fn, arg};
    gps_registry_purge_imports(context, era, purge_one, &purge);
}
