/* stall.c - see stall.h. */
#include "stall.h"

#include <errno.h>

#include "audit/reporter.h"
#include "directory/lease.h"
#include "keeper/keeper_client.h"
#include "lifecycle/lifecycle.h"
#include "process/references.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

#define SECOND UINT64_C(1000000000)

enum { PAUSES = 4 };

static uint64_t longest; /* pause between two writes to a region; under the upload's lock */

void gps_stall_begin(const struct gps_upload *upload) {
    if (!upload->wrote || upload->phase != GPS_UPLOAD_WRITING)
        return;
    const uint64_t pause = gps_clock_monotonic() - upload->wrote;
    longest = pause > longest ? pause : longest;
}

void gps_stall_end(struct gps_upload *upload) {
    upload->wrote = gps_clock_monotonic();
}

static bool is_stalled(const struct gps_upload *upload, uint64_t now) {
    const uint64_t slow = longest < upload->wait / PAUSES ? PAUSES * longest : upload->wait;
    return upload->leads && !upload->busy && !upload->writers && upload->wrote &&
           (upload->phase == GPS_UPLOAD_WRITING || upload->phase == GPS_UPLOAD_UNSEEN) &&
           now - upload->wrote >= (slow > SECOND ? slow : SECOND);
}

/* --- giving one up --- */

/* One that was unseen has been reported. */
static void report(const struct gps_upload *upload) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    struct gps_report said = gps_report_new(GPS_SHARE_FALLBACK);
    const uint64_t written = gps_coverage_total(&upload->coverage);
    if (upload->phase == GPS_UPLOAD_UNSEEN || written == upload->size)
        return;
    gps_text_str(&text,
                 written == gps_coverage_prefix(&upload->coverage) ? "only the first " : "only ");
    gps_text_dec(&text, written);
    gps_text_str(&text, " of ");
    gps_text_dec(&text, upload->size);
    gps_text_str(&text, " bytes were uploaded, so it is not shared; all processes have memory of "
                        "their own");
    gps_upload_describe(upload, &said);
    said.detail = detail;
    gps_report_send(&said);
}

/* The gps_export stays, for its free: which waits until nobody is busy with the upload. */
static void let_go(const struct gps_upload *upload) {
    struct gps_alloc alloc;
    gps_mapping_name(upload->pointer, NULL);
    if (!gps_registry_find(upload->pointer, &alloc) || !alloc.region || !alloc.region->kept)
        return;
    gps_references_end(alloc.region->slot);
    alloc.region->slot = GPS_NO_SLOT;
}

static bool drop(const struct gps_upload *upload) {
    const int status =
        gps_keeper_drop(gps_life_store(), NULL, &upload->region, gps_life_self(), GPS_KEEPER_WAIT);
    if (status < 0 && status != -ENOENT)
        return false;
    let_go(upload);
    report(upload);
    return true;
}

static void give_up(struct gps_upload *upload) {
    gps_upload_lock();
    gps_upload_settle(upload);
    if (!upload->ended && is_stalled(upload, gps_clock_monotonic())) {
        gps_upload_claim(upload);
        gps_upload_unlock();
        const bool dropped = drop(upload);
        gps_upload_lock();
        if (dropped)
            upload->phase = GPS_UPLOAD_PRIVATE;
        gps_upload_release(upload);
    }
    gps_upload_unlock();
}

/* --- finding them --- */

static bool any_stalled(void *arg, struct gps_upload *upload) {
    return is_stalled(upload, *(const uint64_t *)arg);
}

static bool is_of(void *arg, struct gps_upload *upload) {
    return gps_id_equal(&upload->region, arg) && is_stalled(upload, gps_clock_monotonic());
}

static bool look_at(void *unused, const struct gps_proc *proc) {
    (void)unused;
    if (gps_owner_equal(&proc->header.owner, gps_life_self()))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        struct gps_id region = proc->slots[i].region;
        struct gps_upload *upload = gps_upload_find(is_of, &region);
        if (!upload)
            continue;
        give_up(upload);
        gps_upload_put(upload);
    }
    return true;
}

void gps_stall_tick(void) {
    uint64_t now = gps_clock_monotonic();
    struct gps_upload *upload = gps_upload_find(any_stalled, &now);
    if (!upload)
        return;
    gps_upload_put(upload);
    gps_proc_each(gps_life_store(), look_at, NULL);
}

void gps_stall_reset(void) {
    longest = 0;
}
