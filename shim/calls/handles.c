#include "handles.h"

#include "address.h"
#include "directory/token_handle.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/import.h"
#include "ipc/open_cache.h"
#include "ipc/pid_collision.h"
#include "ipc/token.h"
#include "memory.h"
#include "stack/call.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

/* The runtime's wrapper has reported it already. */
void gps_handle_no_output(void) {
    if (!gps_call.runtime)
        gps_diagnose_no_output();
}

int gps_handle_get(uint8_t handle[GPS_HANDLE_BYTES], uint64_t pointer, gps_get_handle_fn *get) {
    int code;
    if (!handle) {
        gps_handle_no_output();
        return get(handle, pointer);
    }
    const uint64_t asked = gps_address_for_driver(pointer);
    if ((gps_deferred_any() && gps_memory_export_denied(asked, &code)) ||
        (gps_mapping_any() && gps_vmm_region_token(asked, handle, &code)))
        return code;
    code = get(handle, asked);
    if (code == GPS_OK)
        gps_export_first(asked, handle);
    else if (code == GPS_INVALID_VALUE &&
             (gps_import_handle(asked, handle) || gps_token_get(asked, handle)))
        return GPS_OK;
    else
        gps_diagnose_pointer(GPS_ASK_EXPORTED, pointer, code);
    return code;
}

/* --- open --- */

/* Counts one more open of a region that is open here: there is nothing to publish or to report. The
 * driver opens it first, or another thread's close could unmap it, and other memory be mapped
 * there. False: the region is not open here, another thread has closed it, or the driver refuses:
 * then the open takes the long way. */
static bool open_again(const struct gps_import *import, const uint8_t handle[GPS_HANDLE_BYTES],
                       unsigned flags, uint64_t *pointer, gps_open_handle_fn *open) {
    uint64_t opened;
    if (!gps_registry_is_open_twice(&import->region, import->context) ||
        open(handle, flags, &opened) != GPS_OK)
        return false;
    if (gps_registry_count_again(&import->region, import->context, opened)) {
        *pointer = opened;
        return true;
    }
    gps_ops->close_handle(opened);
    return false;
}

/* A token is not the driver's: a driver that answers 201 may have taken it for our own. */
static int handle_ask_driver(const struct gps_opening *opening,
                             const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags,
                             uint64_t *pointer, gps_open_handle_fn *open) {
    const int code = gps_token_is(handle) ? gps_import_token(opening, flags, pointer)
                                          : open(handle, flags, pointer);
    return code == GPS_INVALID_CONTEXT ? gps_pid_collision_open(&opening->import, pointer) : code;
}

static int opening_refuse(const struct gps_opening *opening, unsigned flags, int code) {
    gps_import_roll_back(opening);
    gps_diagnose_open(&opening->import, gps_opening_record(opening), flags, code);
    return code;
}

/* Only a region's first open is new to other processes and to the cache. */
static int opening_succeed(const struct gps_opening *opening) {
    if (opening->stage == GPS_OPENING_PUBLISHED && !gps_opening_record(opening))
        gps_diagnose_opened(&opening->import);
    if (opening->stage == GPS_OPENING_PUBLISHED && gps_open_cache_active)
        gps_open_cache_opened(&opening->import);
    return GPS_OK;
}

int gps_handle_open(const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags, uint64_t *pointer,
                    gps_open_handle_fn *open) {
    struct gps_opening opening;
    unsigned endings = 0;
    if (!pointer) {
        gps_handle_no_output();
        return open(handle, flags, pointer);
    }
    gps_import_begin(&opening, handle);
    if (gps_open_cache_active && gps_open_cache_open(&opening.import, flags, pointer))
        return GPS_OK;
    if (open_again(&opening.import, handle, flags, pointer, open))
        return GPS_OK;
    int code = gps_import_prepare(&opening, handle);
    if (code != GPS_OK)
        return code; /* policy denies it */
    if (gps_open_cache_active)
        endings = gps_open_cache_before_driver(&opening.import);
    code = handle_ask_driver(&opening, handle, flags, pointer, open);
    if (code != GPS_OK && gps_open_cache_active &&
        gps_open_cache_retry_after(code, &opening.import, endings))
        code = handle_ask_driver(&opening, handle, flags, pointer, open);
    if (code == GPS_OK)
        code = gps_import_commit(&opening, *pointer);
    return code == GPS_OK ? opening_succeed(&opening) : opening_refuse(&opening, flags, code);
}

void gps_handle_opened_at_base(uint64_t base, uint64_t offset) {
    if (offset)
        gps_diagnose_opened_at_base(base, offset);
}

/* --- close --- */

/* Only a rule or the cache has the region open: the code is that of a pointer that is not open. */
static int deny_close(void) {
    const int code = gps_context_code();
    return code == GPS_OK ? GPS_INVALID_VALUE : code;
}

static int close_import(uint64_t pointer, gps_close_handle_fn *close);

/* The report comes first, while the region is still known. */
__attribute__((cold, noinline)) static int close_unknown(uint64_t pointer,
                                                         gps_close_handle_fn *close) {
    struct gps_import import;
    uint64_t base;
    if (!gps_address_is_inside(pointer, &base) || base == pointer ||
        !gps_registry_import_at(base, &import))
        return close(pointer);
    gps_diagnose_pointer(GPS_ASK_CLOSED, pointer, GPS_INVALID_VALUE);
    return close_import(base, close);
}

static int close_import(uint64_t pointer, gps_close_handle_fn *close) {
    struct gps_import import;
    const bool may_cache = gps_open_cache_active && gps_open_cache_may_keep();
    switch (gps_registry_close(pointer, GPS_VIA_PROGRAM, may_cache, &import)) {
    case GPS_CLOSE_CACHED:
        gps_import_note_closed(&import);
        gps_open_cache_closed(&import);
        return GPS_OK;
    case GPS_CLOSE_ONE:
        return gps_import_close(&import, GPS_VIA_PROGRAM, close);
    case GPS_CLOSE_DENIED:
        return deny_close();
    default:
        return close_unknown(pointer, close);
    }
}

int gps_handle_close(uint64_t pointer, gps_close_handle_fn *close) {
    const int code = close_import(pointer, close);
    if (code != GPS_OK)
        gps_diagnose_pointer(GPS_ASK_CLOSED, pointer, code);
    return code;
}

static int shut_down(uint64_t pointer) {
    (void)pointer;
    return GPS_DEINITIALIZED;
}

void gps_handle_refused_early(int code, uint64_t closed) {
    if (closed && code == GPS_DEINITIALIZED)
        gps_handle_close(closed, shut_down);
    else
        gps_diagnose_refused_early(code);
}
