/* import_close.c - see import_close.h. */
#include "import_close.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "import_slot.h"
#include "open_cache.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

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
        code = gps_mapping_free(import->pointer);
    gps_scope_end(&scope);
    return code;
}

static void note_closed(const struct gps_import *import, uint32_t trace, bool with_context) {
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
        struct gps_scope scope;
        gps_scope_begin(&scope);
        gps_import_slot_end(import, false);
        gps_scope_end(&scope);
    }
    return code;
}

static int no_close(uint64_t pointer) {
    (void)pointer;
    return GPS_OK;
}

void gps_import_roll_back(struct gps_opening *opening) {
    struct gps_import import;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_import_slot_drop(opening->import.slot);
    gps_scope_end(&scope);
    if (opening->counted && gps_registry_close(opening->import.pointer, GPS_VIA_PROGRAM, false,
                                               &import) == GPS_CLOSE_ONE)
        gps_import_close(&import, GPS_VIA_PROGRAM, no_close);
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
    if (import->vmm)
        gps_mapping_close(import->pointer); /* it would outlive its context */
    gps_import_slot_end(import, true);
    if (import->state == GPS_IMPORT_CACHED)
        return; /* the program has closed it before */
    note_closed(import, GPS_NO_TRACE, true);
    if (purge->fn)
        purge->fn(purge->arg, import);
}

void gps_import_purge(uint64_t context, uint32_t epoch,
                      void (*fn)(void *arg, const struct gps_import *import), void *arg) {
    struct purge purge = {fn, arg};
    gps_registry_purge_imports(context, epoch, purge_one, &purge);
}
