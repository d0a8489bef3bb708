#include "vmm_region.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "directory/name.h"
#include "directory/region.h"
#include "directory/token_handle.h"
#include "driver/driver_ops.h"
#include "findings/reporter.h"
#include "keeper/keeper_client.h"
#include "mapping.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "threads/thread.h"
#include "threads/watch.h"
#include "util/clock.h"

static struct {
    _Atomic bool watching, busy; /* busy: the thread uses the driver; stop and await wait for it */
    _Atomic uint64_t socket;     /* inode of the socket of the keeper that has all our regions */
    _Atomic uint32_t tokens;     /* tokens made */
} state;

static uint64_t look_for_keeper(void);
static struct gps_background keeper_watch = {
    .name = "gpushare-keep", .watched = GPS_WATCH_ROOT, .turn = look_for_keeper};

void gps_vmm_region_make_token(uint8_t handle[GPS_HANDLE_BYTES]) {
    gps_membership_join(); /* the token names the directory in which it is known */
    gps_token_make(handle, gps_membership_store(), gps_process_self(),
                   atomic_fetch_add(&state.tokens, 1));
}

bool gps_vmm_region_token(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES], int *code) {
    struct gps_mapping vmm;
    struct gps_alloc alloc;
    if (!gps_mapping_at(pointer, &vmm) || !gps_mapping_is_shared(&vmm) ||
        !gps_registry_find(vmm.pointer, &alloc))
        return false;
    *code = gps_context_code();
    if (*code == GPS_OK)
        memcpy(handle, vmm.handle, GPS_HANDLE_BYTES);
    return true;
}

/* --- another keeper --- */

/* Whether the region is still mapped: the program may have freed it meanwhile, and have other
 * memory at its address. No id is used again, so a region that is there now always was. */
static bool vmm_region_is_there(const struct gps_mapping *vmm) {
    struct gps_mapping now;
    return gps_mapping_at(vmm->pointer, &now) && gps_id_equal(&now.region, &vmm->region);
}

int gps_vmm_region_give(const struct gps_id *region, int descriptor) {
    struct gps_region_record record;
    const int status = gps_region_read(gps_membership_store(), region, &record, NULL);
    return status != 0 ? status
                       : gps_keeper_deposit(gps_membership_store(), &record, gps_process_self(),
                                            descriptor, GPS_KEEPER_WAIT);
}

bool gps_vmm_region_return(const struct gps_id *region, int descriptor) {
    const int status = gps_vmm_region_give(region, descriptor);
    return status == 0 || status == -EEXIST || status == -EPERM || status == -ENOENT;
}

/* Whether the next keeper has this region, which was created here, or does not need it. */
static bool is_deposited(const struct gps_mapping *mapping) {
    int descriptor;
    if (mapping->borrowed) /* it came back from the keeper, and only another process can give it */
        return true;
    /* Set before the phase is read: a suspension sets that, then reads `busy`. */
    state.busy = true;
    if (gps_process_phase() == GPS_PHASE_SUSPENDED) {
        state.busy = false;
        return false;
    }
    const bool has = !gps_background_stopped(&keeper_watch) &&
                     gps_mapping_descriptor(mapping->pointer, &descriptor) == GPS_OK;
    state.busy = false;
    if (!has)
        return gps_background_stopped(&keeper_watch);
    const bool returned =
        !vmm_region_is_there(mapping) || gps_vmm_region_return(&mapping->region, descriptor);
    close(descriptor);
    return returned;
}

/* A keeper that did not answer may answer again. Deposits all regions that this process created
 * when the socket is another one than before; after a failure it tries again a second later. */
static uint64_t look_for_keeper(void) {
    const uint64_t other =
        gps_keeper_other(gps_membership_store(), gps_process_self(), atomic_load(&state.socket));
    struct gps_mapping mapping = {.pointer = 0};
    bool all = true;
    if (!other)
        return GPS_SECOND;
    while (gps_mapping_next(&mapping))
        if (mapping.created && gps_mapping_is_shared(&mapping))
            all &= is_deposited(&mapping);
    if (all)
        atomic_store(&state.socket, other);
    return GPS_SECOND;
}

/* Where the thread does not start, the next region tries again. */
static void start_watching(void) {
    if (!atomic_exchange(&state.watching, true))
        atomic_store(&state.socket, gps_keeper_socket(gps_membership_store()));
    (void)gps_background_start(&keeper_watch);
}

void gps_vmm_region_stop(void) {
    gps_background_stop(&keeper_watch);
    gps_thread_await(&state.busy, GPS_SECOND); /* after the look under way */
}

bool gps_vmm_region_await(uint64_t timeout) {
    gps_thread_await(&state.busy, timeout);
    return !state.busy;
}

void gps_vmm_region_reset(void) {
    gps_background_reset(&keeper_watch);
    memset((void *)&state, 0, sizeof(state));
}

/* --- one region --- */

static int vmm_region_deposit(struct gps_export *region) {
    int descriptor;
    if (gps_mapping_descriptor(region->pointer, &descriptor) != GPS_OK)
        return -ENOTSUP;
    gps_record_seal(&region->record);
    const int status = gps_keeper_deposit(gps_membership_store(), &region->record,
                                          gps_process_self(), descriptor, GPS_KEEPER_WAIT);
    close(descriptor);
    return status == -EEXIST ? 0 : status;
}

/* The slot comes first: the keeper keeps a region for processes that it finds in the directory. */
int gps_vmm_region_publish(struct gps_export *region) {
    const struct gps_region_record *record = &region->record;
    int status = gps_references_begin(&record->id, GPS_VIA_CREATOR, &region->slot);
    if (status == 0)
        status = gps_references_commit(region->slot, &record->id, GPS_VIA_CREATOR, region->pointer,
                                       record->generation, 0);
    if (status == 0)
        status = vmm_region_deposit(region);
    if (status == 0 && *record->name)
        status =
            gps_name_point(gps_membership_store(), record->name, gps_process_self(), &record->id);
    if (status == -ETIMEDOUT)
        start_watching(); /* until the keeper answers again */
    if (status < 0) {
        gps_references_end(region->slot);
        gps_keeper_drop(gps_membership_store(), NULL, &record->id, gps_process_self(),
                        GPS_KEEPER_WAIT);
        return status;
    }
    gps_mapping_name(region->pointer, record);
    start_watching();
    return 0;
}

void gps_vmm_region_end(struct gps_export *region) {
    gps_report_reference(gps_references_end(region->slot));
    gps_keeper_released(gps_membership_store(), &region->record.id, gps_process_self(),
                        GPS_KEEPER_WAIT);
}

int gps_vmm_region_open(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    int descriptor;
    const int status = gps_keeper_get(gps_membership_store(), &record->id, gps_process_self(),
                                      GPS_KEEPER_WAIT, &descriptor);
    if (status == -ETIMEDOUT)
        start_watching(); /* until the keeper answers again */
    if (status < 0)
        return status;
    const int code = gps_mapping_open(descriptor, record, size, pointer);
    close(descriptor);
    return code;
}
