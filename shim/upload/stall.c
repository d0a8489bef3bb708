/* stall.c - see stall.h. */
#include "stall.h"

#include <errno.h>

#include "audit/reporter.h"
#include "directory/lease.h"
#include "keeper/keeper_client.h"
#include "process/background.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

enum { PAUSES = 4 };

/* Pause between two writes to a region. Of two threads that set it at once either may win. */
static _Atomic uint64_t longest;

void gps_stall_begin(const struct gps_upload *upload) {
    if (!upload->wrote || upload->phase != GPS_UPLOAD_WRITING)
        return;
    const uint64_t pause = gps_clock_monotonic() - upload->wrote;
    if (pause > longest)
        longest = pause;
}

void gps_stall_end(struct gps_upload *upload) {
    upload->wrote = gps_clock_monotonic();
}

static bool is_stalled(const void *now, const struct gps_upload *upload) {
    const uint64_t pause = longest;
    const uint64_t slow = pause < upload->wait / PAUSES ? PAUSES * pause : upload->wait;
    return upload->leads && !upload->ended && !upload->writers && upload->wrote &&
           (upload->phase == GPS_UPLOAD_WRITING || upload->phase == GPS_UPLOAD_UNSEEN) &&
           *(const uint64_t *)now - upload->wrote >= (slow > GPS_SECOND ? slow : GPS_SECOND);
}

/* --- giving one up --- */

/* One that was unseen has been reported. */
static void report(const struct gps_upload *upload) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    const uint64_t written = gps_coverage_total(&upload->coverage);
    if (upload->phase == GPS_UPLOAD_UNSEEN || written == upload->size)
        return;
    gps_text_add(&text,
                 "only %s%lu of %lu bytes were uploaded, so it is not shared; all processes have "
                 "memory of their own",
                 written == gps_coverage_prefix(&upload->coverage) ? "the first " : "", written,
                 upload->size);
    gps_upload_report(upload, GPS_SHARE_FALLBACK, detail);
}

/* The gps_export stays, for its free: which waits until nobody is busy with the upload. */
static void let_go(const struct gps_upload *upload) {
    struct gps_alloc alloc;
    gps_mapping_name(upload->pointer, NULL);
    if (!gps_registry_find(upload->pointer, &alloc) || !alloc.region || !alloc.region->vmm)
        return;
    gps_report_reference(gps_references_end(alloc.region->slot));
    alloc.region->slot = GPS_NO_SLOT;
}

static void give_up(struct gps_upload *upload) {
    const uint64_t now = gps_clock_monotonic();
    gps_upload_claim(upload);
    const int status = is_stalled(&now, upload)
                           ? gps_keeper_drop(gps_membership_store(), NULL, &upload->region,
                                             gps_process_self(), GPS_KEEPER_WAIT)
                           : -EAGAIN;
    if (status >= 0 || status == -ENOENT) {
        let_go(upload);
        report(upload);
        upload->phase = GPS_UPLOAD_PRIVATE;
    }
    gps_upload_release(upload);
}

/* --- finding them --- */

static bool is_of(const void *region, const struct gps_upload *upload) {
    const uint64_t now = gps_clock_monotonic();
    return gps_id_equal(&upload->region, region) && is_stalled(&now, upload);
}

static bool look_at(void *unused, const struct gps_proc *proc) {
    (void)unused;
    if (gps_owner_equal(&proc->header.owner, gps_process_self()))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        struct gps_upload *upload = gps_upload_find(is_of, &proc->slots[i].region);
        if (!upload)
            continue;
        give_up(upload);
        gps_upload_put(upload);
    }
    return true;
}

static uint64_t look_for_stalled(void) {
    const uint64_t now = gps_clock_monotonic();
    struct gps_upload *upload = gps_upload_find(is_stalled, &now);
    if (upload) {
        gps_upload_put(upload);
        gps_proc_each(gps_membership_store(), look_at, NULL);
    }
    return GPS_SECOND;
}

static struct gps_background task = {
    .name = "gpushare-upload", .turn = look_for_stalled, .lock = PTHREAD_MUTEX_INITIALIZER};

void gps_stall_start(void) {
    (void)gps_background_start(&task);
}

void gps_stall_reset(void) {
    gps_background_reset(&task);
    longest = 0;
}
