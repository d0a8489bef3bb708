/* rule_export.c - an allocation becomes a named region; see rule_request.h. */
#include <errno.h>

#include "directory/name.h"
#include "driver/driver_ops.h"
#include "frames/exchange.h"
#include "ipc/export.h"
#include "ipc/reclaim.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/padding.h"
#include "registry/registry.h"
#include "rule_request.h"
#include "stack/trace.h"
#include "vmm/mapping.h"

static uint64_t region_round_up(uint64_t size) {
    const uint64_t block =
        2u << 20; /* the driver maps such blocks: a smaller region would show neighbours */
    return (size + block - 1) / block * block;
}

/* The buffer, and the slots behind it. */
static uint64_t with_slots(const struct gps_rule_request *request) {
    const uint64_t stride = gps_frames_stride(request->size);
    return stride > UINT64_MAX / (GPS_FRAMES_SLOTS_MAX + 1)
               ? UINT64_MAX / 2 /* more than there is */
               : stride * (request->rule->frame_slots + UINT64_C(1));
}

/* Begins frames, where there is room for them. A process that joins meanwhile waits, or finds that
 * their file is gone. */
static void export_begin_frames(const struct gps_rule_request *request, bool room,
                                uint64_t pointer) {
    struct gps_alloc alloc;
    if (request->rule->frames == GPS_FRAMES_OFF)
        return;
    if (room && gps_registry_find(pointer, &alloc) && alloc.region && alloc.region->record.frames &&
        gps_frames_export(&alloc.region->record, request->rule, pointer, request->context))
        return;
    gps_rule_request_report(request, GPS_SHARE_FALLBACK,
                            room ? "its frames cannot be published; the buffer is shared without"
                                 : "there is no memory for slots; the buffer is shared without "
                                   "frames",
                            NULL);
}

static enum gps_outcome export_vmm(const struct gps_rule_request *request, uint64_t *pointer) {
    struct gps_alloc alloc = {.size = request->size,
                              .context = request->context,
                              .era = gps_registry_era(),
                              .device = (int16_t)request->device,
                              .trace = gps_trace_kept()};
    uint64_t extent;
    int code = GPS_OUT_OF_MEMORY;
    bool framed = request->rule->frames != GPS_FRAMES_OFF;
    if (framed)
        code = GPS_WITH_RECLAIM(
            gps_mapping_create(request->size, with_slots(request), &alloc.pointer, &extent));
    framed = code == GPS_OK;
    if (code == GPS_OUT_OF_MEMORY)
        code = GPS_WITH_RECLAIM(
            gps_mapping_create(request->size, request->size, &alloc.pointer, &extent));
    if (code != GPS_OK && (code == GPS_OUT_OF_MEMORY || gps_context_state() != GPS_OK))
        return GPS_PRIVATE; /* the program's own call gets the error */
    if (code != GPS_OK)
        return gps_rule_request_private(request, "this device or driver has no VMM memory to share",
                                        NULL);
    struct gps_frame_file frames = {.fd = -1};
    const char *why =
        gps_export_to_keeper(&alloc, extent, request->rule, request->name, framed ? &frames : NULL);
    if (why) {
        gps_frame_file_made(&frames);
        gps_mapping_close(alloc.pointer);
        return gps_rule_request_private(request, why, NULL);
    }
    gps_padding_add(alloc.pointer, request->size, extent);
    export_begin_frames(request, framed, alloc.pointer);
    gps_frame_file_made(&frames);
    *pointer = alloc.pointer;
    return GPS_DONE;
}

static enum gps_outcome export_legacy(const struct gps_rule_request *request, uint64_t *pointer) {
    uint8_t handle[GPS_HANDLE_BYTES];
    struct gps_alloc alloc = {.size = request->size,
                              .context = request->context,
                              .era = gps_registry_era(),
                              .device = (int16_t)request->device};
    uint64_t allocated = region_round_up(with_slots(request));
    const bool framed = request->rule->frames != GPS_FRAMES_OFF &&
                        GPS_WITH_RECLAIM(gps_ops->allocate(allocated, &alloc.pointer)) == GPS_OK;
    if (!framed)
        allocated = region_round_up(request->size);
    if (!framed && GPS_WITH_RECLAIM(gps_ops->allocate(allocated, &alloc.pointer)) != GPS_OK)
        return GPS_PRIVATE; /* the program's own call gets the error */
    struct gps_frame_file frames = {.fd = -1};
    if (gps_ops->get_handle(alloc.pointer, handle) != GPS_OK ||
        !gps_export_by_rule(&alloc, allocated, handle, request->rule, request->name,
                            framed ? &frames : NULL)) {
        gps_frame_file_made(&frames);
        gps_ops->release(alloc.pointer);
        return gps_rule_request_private(request, "it could not be exported", NULL);
    }
    gps_padding_add(alloc.pointer, request->size, allocated);
    export_begin_frames(request, framed, alloc.pointer);
    gps_frame_file_made(&frames);
    *pointer = alloc.pointer;
    return GPS_DONE;
}

/* With the name, which it releases if there is no region; `status` is that of the claim. */
static enum gps_outcome export_claimed(const struct gps_rule_request *request, int status,
                                       uint64_t *pointer) {
    if (status != 0)
        return gps_rule_request_private(request, "its name could not be claimed", NULL);
    const enum gps_outcome outcome = request->rule->backing == GPS_RULE_VMM
                                         ? export_vmm(request, pointer)
                                         : export_legacy(request, pointer);
    if (outcome == GPS_PRIVATE)
        gps_name_release(gps_membership_store(), request->name, gps_process_self(), NULL);
    return outcome;
}

bool gps_rule_take_over(const struct gps_rule_request *request, uint64_t *pointer,
                        enum gps_outcome *outcome) {
    const int status = gps_rule_request_take(request, NULL);
    if (status == -EEXIST)
        return false;
    *outcome = export_claimed(request, status, pointer);
    return true;
}

enum gps_outcome gps_rule_export(const struct gps_rule_request *request, uint64_t *pointer) {
    struct gps_owner holder = {0};
    const int status = gps_rule_request_take(request, &holder);
    if (status != -EEXIST)
        return export_claimed(request, status, pointer);
    return gps_rule_request_private(request,
                                    gps_process_is_self(&holder)
                                        ? "this process has a live region of this name"
                                        : "another live process has a region of this name",
                                    gps_process_is_self(&holder) ? NULL : &holder);
}
