#include "pools.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "findings/reporter.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/registry.h"
#include "registry/sharing.h"
#include "stack/trace.h"
#include "util/file_mark.h"

void gps_pools_made(struct gps_pool made) {
    made.made = gps_trace_kept();
    gps_pool_add(&made);
}

void gps_pools_imported(struct gps_pool made, int descriptor) {
    gps_sharing_note(GPS_SHARING_POOL);
    if (gps_process_audits())
        made.exporter = gps_file_claimant(descriptor);
    gps_pools_made(made);
    gps_vmm_described(
        descriptor, 0,
        &(struct gps_vmm_descriptor){.way = GPS_VMM_IMPORTED_FROM, .trace = gps_trace_kept()});
}

/* Marks the descriptor with whose pool it is: two processes' pointers can have equal data. */
void gps_pools_exported(int descriptor) {
    gps_sharing_note(GPS_SHARING_POOL);
    if (gps_process_audits())
        gps_file_claim(descriptor);
    gps_vmm_described(
        descriptor, 0,
        &(struct gps_vmm_descriptor){.way = GPS_VMM_EXPORTED_AS, .trace = gps_trace_kept()});
}

/* True: the pointer was imported before. */
static bool add_pointer(struct gps_pool_pointer made) {
    made.made = gps_trace_kept();
    made.slot = GPS_NO_SLOT;
    made.era = gps_registry_era();
    gps_ops->context(&made.context);
    gps_freed_forget(GPS_FREED_POINTER, made.pointer);
    gps_freed_forget(GPS_FREED_MEMORY, made.pointer);
    return gps_pool_pointer_add(&made);
}

void gps_pools_allocated(struct gps_pool_pointer made, uint64_t stream) {
    if (!gps_stream_is_capturing(stream))
        add_pointer(made);
}

/* Publishes an imported pointer, before the program can tell its exporter of it. */
static void pool_pointer_publish(const struct gps_pool_pointer *made, const struct gps_id *id) {
    unsigned slot;
    GPS_SCOPE();
    gps_report_reference(gps_references_begin(id, GPS_VIA_POOL, &slot));
    gps_report_reference(gps_references_commit(slot, id, GPS_VIA_POOL, made->pointer, 0, 0));
    if (slot != GPS_NO_SLOT && !gps_pool_pointer_set_slot(made->pointer, id, slot))
        gps_references_end(slot); /* freed already, or not recorded */
}

void gps_pools_pointer_imported(struct gps_pool_pointer made,
                                const uint8_t exported[GPS_HANDLE_BYTES]) {
    struct gps_pool pool;
    gps_sharing_note(GPS_SHARING_POOL);
    made.imports = 1;
    if (add_pointer(made) || !gps_process_audits() || !gps_pool_find(made.pool, &pool) ||
        !pool.exporter)
        return;
    const struct gps_id id = gps_id_of_pointer(exported, pool.exporter);
    pool_pointer_publish(&made, &id);
}

void gps_pools_pointer_exported(uint64_t pointer, const uint8_t exported[GPS_HANDLE_BYTES]) {
    const struct gps_id id = gps_id_of_pointer(exported, (uint32_t)gps_process_self()->pid);
    gps_pool_pointer_exported(pointer, &id, gps_trace_kept());
}

void gps_pools_not_exported(uint64_t pool, uint32_t type, int code) {
    gps_diagnose_pool_export(pool, type, code);
}

void gps_pools_pointer_not_exported(uint64_t pointer, int code) {
    gps_diagnose_pool_pointer_export(pointer, code);
}

void gps_pools_not_allocated(uint64_t pool, int code) {
    gps_diagnose_pool_allocation(pool, code);
}

int gps_pools_destroy(uint64_t pool, gps_handle_fn *destroy) {
    struct gps_pool taken;
    const bool known = gps_pool_take(pool, &taken);
    const int code = destroy(pool);
    if (code != GPS_OK && known)
        gps_pool_add(&taken);
    else if (known && taken.pointers)
        gps_diagnose_pool_destroyed(&taken);
    return code;
}

/* The driver counts no further import of a pointer: its first free is its last one. */
static enum gps_freed_kind note_free(const struct gps_pool_pointer *pointer) {
    const enum gps_freed_kind kind = pointer->imports > 1 ? GPS_FREED_POINTER : GPS_FREED_MEMORY;
    gps_freed_note(kind, pointer->pointer,
                   (struct gps_freed){.born = pointer->made,
                                      .ended = gps_trace_kept(),
                                      .context = pointer->context,
                                      .size = pointer->size,
                                      .device = -1});
    return kind;
}

/* The driver has freed the pointer. */
static void ended(const struct gps_pool_pointer *pointer) {
    if (pointer->imports && pointer->slot != GPS_NO_SLOT) {
        GPS_SCOPE();
        gps_report_reference(gps_references_end(pointer->slot));
    } else if (pointer->exported && gps_process_audits()) {
        gps_diagnose_pool_order(pointer);
    }
}

int gps_pools_free(uint64_t pointer, const struct gps_release *release) {
    struct gps_pool_pointer taken;
    const bool known = gps_pool_pointer_take(pointer, &taken);
    const enum gps_freed_kind kind = known ? note_free(&taken) : GPS_FREED_KINDS;
    const int code = release->call(pointer, release->stream);
    if (known ? code != GPS_OK : code == GPS_OK)
        gps_freed_forget(known ? kind : GPS_FREED_POINTER, pointer);
    if (known && code != GPS_OK)
        gps_pool_pointer_add(&taken);
    else if (known)
        ended(&taken);
    else
        gps_diagnose_pool_free(pointer, code);
    return code;
}
