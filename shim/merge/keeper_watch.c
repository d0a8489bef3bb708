#include "merger.h"

#include <stddef.h>
#include <unistd.h>

#include "away.h"
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

static bool return_block(const struct gps_away *block) {
    int descriptor;
    if (gps_away_descriptor(block, &descriptor) != GPS_OK)
        return false;
    const bool returned = gps_vmm_region_return(&block->id, descriptor);
    close(descriptor);
    return returned;
}

static bool return_all(void) {
    struct gps_away block = {.address = 0};
    bool all = true;
    while (gps_away_next(&block))
        all &= !block.own || return_block(&block);
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
