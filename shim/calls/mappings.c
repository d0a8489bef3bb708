#include "mappings.h"

#include <string.h>

#include "address.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "ipc/token.h"
#include "learn/learner.h"
#include "log/event_log.h"
#include "merge/created.h"
#include "merge/writable.h"
#include "process/gpu_bytes.h"
#include "process/process.h"
#include "registry/sharing.h"
#include "rules/rule_counts.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/file_mark.h"
#include "util/forgotten.h"

/* --- figures for other processes --- */

/* By ordinal. Publishing a change takes four system calls, as long as two of the driver's: so a
 * change of less than a 64th is published with the next larger one, or by a call a second later. */
enum { SMALL = 64 };

static struct told {
    struct gps_gpu_bytes published;
    _Atomic uint64_t bytes, when;
} told[GPS_VMM_GPUS];
GPS_FORGOTTEN(told);

static bool is_worth_telling(const struct told *one, uint64_t bytes) {
    const uint64_t before = atomic_load(&one->bytes);
    const uint64_t change = bytes > before ? bytes - before : before - bytes;
    return !bytes || change > before / SMALL ||
           gps_clock_monotonic() - atomic_load(&one->when) > GPS_SECOND;
}

__attribute__((noinline)) static void tell(struct told *one, int device, uint64_t bytes) {
    GPS_SCOPE();
    if (!gps_gpu_bytes_of_device(&one->published, GPS_VIA_MADE, device, gps_vmm_bytes))
        return;
    atomic_store(&one->bytes, bytes);
    atomic_store(&one->when, gps_clock_monotonic());
    gps_gpu_bytes_publish(&one->published);
    gps_event_log_write(&(struct gps_event_line){
        .what = "made", .size = gps_vmm_bytes(device), .device = one->published.gpu.bytes});
}

static void publish_changes(void) {
    for (uint32_t changed = gps_vmm_changed(); changed; changed &= changed - 1) {
        const int device = __builtin_ctz(changed);
        const uint64_t bytes = gps_vmm_bytes(device);
        if (is_worth_telling(&told[device], bytes))
            tell(&told[device], device, bytes);
    }
}

/* --- memory --- */

void gps_mappings_made(struct gps_vmm_memory made) {
    made.made = gps_trace_kept();
    if (made.origin == GPS_VMM_CREATED && !(made.types & GPS_VMM_FABRIC))
        gps_vmm_fabric_forget();
    if (made.origin == GPS_VMM_MULTICAST)
        gps_sharing_note(GPS_SHARING_MULTICAST);
    gps_vmm_made(&made);
    publish_changes();
}

uint64_t gps_mappings_take(struct gps_vmm_memory *made, const struct gps_block_like *like) {
    struct gps_merge_request request;
    uint8_t uuid[GPS_UUID_BYTES];
    uint64_t handle;
    const bool merges =
        gps_merge_active && gps_options_merge_created(&gps_process_config()->options);
    if (gps_learn_active) {
        made->plain = true;
        gps_learn_created(made->size);
    }
    if (!merges && !gps_rule_counts_active)
        return made->handle;
    if (merges)
        gps_plain_look_and_make();
    GPS_DRIVER_SCOPE();
    made->taken = gps_rules_take_created(made->size, made->device, merges, &request, uuid) &&
                  gps_created_make(&request, like, made->handle, &handle);
    return made->taken ? handle : made->handle;
}

/* An audit marks the file, to know at the end whether the number is still that file's. */
static void note_descriptor(int number, uint64_t handle, enum gps_vmm_way way) {
    struct gps_vmm_descriptor descriptor = {.way = way, .trace = gps_trace_kept()};
    if (gps_process_audits())
        descriptor.mark = gps_file_mark(number, handle ^ (uint64_t)gps_process_self()->pid << 32);
    gps_vmm_described(number, handle, &descriptor);
}

void gps_mappings_imported(struct gps_vmm_memory made, int descriptor) {
    gps_sharing_note(GPS_SHARING_MEMORY_IMPORTED);
    gps_mappings_made(made);
    note_descriptor(descriptor, made.handle, GPS_VMM_IMPORTED_FROM);
}

void gps_mappings_exported(uint64_t handle, int descriptor) {
    gps_sharing_note(GPS_SHARING_MEMORY_EXPORTED);
    note_descriptor(descriptor, handle, GPS_VMM_EXPORTED_AS);
}

void gps_mappings_exported_otherwise(void) {
    gps_sharing_note(GPS_SHARING_MEMORY_EXPORTED);
}

void gps_mappings_held_by_dma_buf(void) {
    gps_sharing_note(GPS_SHARING_DMA_BUF);
}

void gps_mappings_external(void) {
    gps_sharing_note(GPS_SHARING_EXTERNAL);
}

int gps_mappings_import_external(const struct gps_external *import) {
    const int wrong = gps_diagnose_descriptor(import->descriptor);
    const int code = import->call(import);
    if (code == GPS_OK)
        gps_mappings_external();
    else
        gps_diagnose_external(import->descriptor, wrong, code);
    if (code == GPS_OK || code == GPS_UNKNOWN) /* recorded: the driver closes it then, too */
        gps_vmm_consumed(import->descriptor);
    return code;
}

uint64_t gps_mappings_retained(uint64_t handle) {
    const uint64_t known = gps_created_retained(handle);
    gps_vmm_retained(known);
    return known;
}

void gps_mappings_bound(uint64_t handle) {
    gps_vmm_bound(handle);
}

void gps_mappings_bound_at(uint64_t pointer) {
    gps_vmm_bound_at(pointer);
}

/* Whether the driver refused fabric handles; later calls show whether the program needs them. */
static bool is_fabric_refused(const struct gps_vmm_memory *asked, int code) {
    return asked->types & GPS_VMM_FABRIC &&
           (code == GPS_NOT_PERMITTED || code == GPS_NOT_SUPPORTED);
}

void gps_mappings_not_made(const struct gps_vmm_memory *asked, int code) {
    gps_call.told = is_fabric_refused(asked, code);
    if (gps_call.told)
        gps_vmm_fabric_refused(&(struct gps_vmm_refusal){
            .size = asked->size, .device = asked->device, .code = code, .trace = gps_trace_kept()});
    else if (!(asked->types & GPS_VMM_FABRIC))
        gps_vmm_fabric_forget();
    if (asked->device >= 0)
        gps_diagnose_vmm_create(asked->size, code);
}

void gps_mappings_not_retained(uint64_t pointer, int code) {
    gps_diagnose_unmapped(pointer, 1, code);
}

void gps_mappings_refused(bool nowhere, int code) {
    if (gps_process_audits() && !gps_call.told)
        gps_diagnose_refused(nowhere, code);
}

void gps_mappings_not_exported(uint64_t handle, uint32_t type, int code) {
    gps_diagnose_vmm_export(handle, type, code);
}

void gps_mappings_not_imported(const void *shared, int code) {
    gps_diagnose_vmm_import((uintptr_t)shared, code);
}

void gps_mappings_no_output(void) {
    gps_diagnose_no_output();
}

int gps_mappings_release(uint64_t handle, gps_handle_fn *release) {
    struct gps_vmm_pending *const pending = gps_vmm_release(handle, gps_trace_kept());
    const bool taken = gps_created_is(handle) && gps_created_release(handle);
    const int code = taken ? GPS_OK : release(gps_mappings_unless_taken(handle));
    gps_vmm_released(pending, code == GPS_OK);
    publish_changes();
    if (code != GPS_OK)
        gps_diagnose_release(handle, code);
    return code;
}

/* --- tokens --- */

bool gps_mappings_have_tokens(void) {
    return gps_process_config()->options.vmm_ipc == GPS_VMM_IPC_ON;
}

bool gps_mappings_is_passable(uint64_t handle) {
    struct gps_vmm_memory memory;
    return gps_mappings_have_tokens() && gps_vmm_find(handle, &memory) && memory.passable;
}

bool gps_mappings_is_passable_at(uint64_t address) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    return gps_mappings_have_tokens() && gps_vmm_mapping_from(address, &mapping, &memory) &&
           mapping.pointer <= address && memory.passable;
}

/* --- memory that a merge rule took --- */

bool gps_mappings_is_taken(uint64_t handle) {
    return gps_created_is(handle);
}

uint64_t gps_mappings_unless_taken(uint64_t handle) {
    return gps_created_is(handle) ? 0 : handle;
}

int gps_mappings_give(uint64_t handle, uint32_t types, uint64_t *given) {
    uint64_t memory;
    *given = handle;
    if (!gps_created_is(handle))
        return GPS_OK;
    const int code = gps_created_keep(handle, types, &memory);
    *given = memory;
    publish_changes();
    return code;
}

int gps_mappings_give_range(uint64_t pointer, uint64_t size) {
    const int code = gps_created_keep_range(pointer, size);
    publish_changes();
    return code;
}

bool gps_mappings_like(uint64_t handle, struct gps_block_like *like) {
    return gps_created_is(handle) && gps_created_like(handle, like);
}

bool gps_mappings_retain(uint64_t pointer, uint64_t *handle) {
    const bool taken = gps_created_retain(pointer, handle);
    if (taken)
        gps_vmm_retained(*handle);
    return taken;
}

/* --- addresses --- */

void gps_mappings_reserved(uint64_t pointer, uint64_t size) {
    gps_vmm_reserved(pointer, size);
}

int gps_mappings_unreserve(uint64_t pointer, uint64_t size, gps_range_fn *unreserve) {
    if (gps_place_is_allocated(gps_at(pointer)))
        return GPS_INVALID_VALUE;
    struct gps_vmm_pending *const pending = gps_vmm_unreserve(pointer, size);
    const int code = unreserve(pointer, size);
    gps_vmm_unreserved(pending, code == GPS_OK);
    if (code != GPS_OK)
        gps_diagnose_unreserve(pointer, size, code);
    return code;
}

static int mapping_map_memory(void *arg, uint64_t memory) {
    const struct gps_map *const map = *(const struct gps_map **)arg;
    return map->call(map, memory);
}

static int call_map(const struct gps_map *map) {
    const struct gps_created_map created = {
        mapping_map_memory, &map, map->handle, map->pointer, map->size, map->plain && !map->offset};
    int code;
    return gps_created_is(map->handle) && gps_created_map(&created, &code)
               ? code
               : map->call(map, gps_mappings_unless_taken(map->handle));
}

int gps_mappings_map(const struct gps_map *map) {
    if (gps_place_is_allocated(gps_at(map->pointer)))
        return GPS_INVALID_VALUE;
    const struct gps_vmm_mapping mapping = {.pointer = map->pointer,
                                            .size = map->size,
                                            .offset = map->offset,
                                            .mapped = gps_trace_kept()};
    struct gps_vmm_pending *const pending = gps_vmm_map(map->handle);
    const int code = call_map(map);
    gps_vmm_mapped(pending, &mapping, code == GPS_OK);
    publish_changes(); /* its last reference may have ended meanwhile */
    if (code == GPS_OK)
        gps_token_mapped(map->pointer);
    if (code != GPS_OK)
        gps_diagnose_map(map->handle, map->pointer, map->size, code);
    return code;
}

static int real_unmap(uint64_t pointer, uint64_t size, const void *arg) {
    return (*(gps_range_fn *const *)arg)(pointer, size);
}

static int call_unmap(uint64_t pointer, uint64_t size, gps_range_fn *unmap) {
    int code;
    return gps_created_unmap(pointer, size, real_unmap, &unmap, &code) ? code
                                                                       : unmap(pointer, size);
}

int gps_mappings_unmap(uint64_t pointer, uint64_t size, gps_range_fn *unmap) {
    if (gps_place_is_allocated(gps_at(pointer)))
        return GPS_INVALID_VALUE;
    const uint64_t serial = gps_token_serial(pointer);
    struct gps_vmm_pending *const pending = gps_vmm_unmap(pointer, size, gps_process_audits());
    const bool empty = !pending && gps_vmm_is_empty(pointer, size);
    gps_token_end(pointer, size, serial);
    if (gps_learn_active)
        gps_learn_unmapped(pointer, size);
    const int code = call_unmap(pointer, size, unmap);
    gps_vmm_unmapped(pending, code == GPS_OK);
    publish_changes();
    if (code != GPS_OK)
        gps_diagnose_unmap(pointer, size, code);
    else if (empty)
        gps_diagnose_unmap_nothing(pointer, size);
    return code;
}

void gps_mappings_allowed(uint64_t pointer, uint64_t size, unsigned device, bool reads,
                          bool writes) {
    gps_vmm_allowed(pointer, size, device, reads, writes);
    if (gps_learn_active)
        gps_learn_mapped(pointer, size);
}

static int mapping_real_allow(uint64_t pointer, uint64_t size, const void *arg) {
    const struct gps_allow *const allow = arg;
    return allow->call(allow, pointer, size);
}

int gps_mappings_allow(const struct gps_allow *allow) {
    int code;
    if (gps_place_is_allocated(gps_at(allow->pointer)))
        return GPS_INVALID_VALUE;
    if (!gps_created_allow(allow->pointer, allow->size, allow->device, mapping_real_allow, allow,
                           &code))
        code = allow->call(allow, allow->pointer, allow->size);
    else
        publish_changes();
    if (code != GPS_OK)
        gps_diagnose_unmapped(allow->pointer, allow->size, code);
    return code;
}
