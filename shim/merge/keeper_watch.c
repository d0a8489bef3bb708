#include "merger.h"

#include <stddef.h>
#include <unistd.h>

#include "area.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "keeper/keeper_client.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/forgotten.h"
#include "util/text.h"
#include "vmm/vmm_region.h"

static uint64_t known; /* the socket of the keeper that has all of ours, by inode */
GPS_FORGOTTEN(known);

struct own_block {
    uint64_t address;
    struct gps_id id;
    int descriptor; /* -1: it could not be had */
};

static bool is_next(const struct gps_area *area, const struct gps_block *block,
                    const struct own_block *before) {
    return gps_block_is_merged(block) && gps_block_is_own(block) &&
           area->pointer + block->at > before->address;
}

static void describe(const struct gps_area *area, const struct gps_block *block,
                     struct own_block *found) {
    *found = (struct own_block){area->pointer + block->at, block->id, -1};
    if (gps_ops->block_export(block->memory, &found->descriptor) != GPS_OK)
        found->descriptor = -1;
}

/* Finds the next merged block that was created here, by address. */
static bool next(struct own_block *own) {
    bool found = false;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area && !found; area = gps_area_next(area))
        for (unsigned i = 0; i < area->count && !found; i++)
            if ((found = is_next(area, &area->blocks[i], own)))
                describe(area, &area->blocks[i], own);
    return found;
}

static bool return_all(void) {
    struct own_block own = {.address = 0};
    bool all = true;
    while (next(&own)) {
        all &= own.descriptor >= 0 && gps_vmm_region_return(&own.id, own.descriptor);
        if (own.descriptor >= 0)
            close(own.descriptor);
    }
    return all;
}

static void look(void) {
    const uint64_t other = gps_keeper_other(gps_membership_store(), gps_process_self(), known);
    if (other && return_all())
        known = other;
}

/* --- the directory --- */

static bool told_of_removal;
GPS_FORGOTTEN(told_of_removal);

/* Processes that start later make another directory, with another key of the hashes. */
static void tell_of_removal(void) {
    char detail[512]; /* cut to fit */
    struct gps_text text = GPS_TEXT(detail);
    if (told_of_removal || !gps_membership_is_lost())
        return;
    told_of_removal = true;
    gps_text_strs(&text, gps_membership_store()->path,
                  " was removed: processes that started since share nothing with this one; start "
                  "it again");
    struct gps_report report = gps_report_new(GPS_STORE_UNAVAILABLE);
    report.detail = detail;
    gps_report_send(&report);
}

void gps_keeper_watch_turn(void) {
    GPS_DRIVER_SCOPE();
    if (gps_membership_store())
        look();
    tell_of_removal();
}
