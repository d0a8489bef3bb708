/* keeper_watch.c - see keeper_watch.h. */
#include "keeper_watch.h"

#include <stddef.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "keeper/keeper_client.h"
#include "process/membership.h"
#include "process/process.h"
#include "shared_block.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"

static uint64_t known; /* the socket of the keeper that has all of ours, by inode */
GPS_FORGOTTEN(known);

struct merged {
    uint64_t address;
    struct gps_id id;
    bool owned;
    int descriptor; /* of an own one; -1: it could not be had */
};

static bool is_next(const struct gps_area *area, const struct gps_block *block,
                    const struct merged *before) {
    return gps_block_is_merged(block) && area->pointer + block->at > before->address;
}

static void describe(const struct gps_area *area, const struct gps_block *block,
                     struct merged *merged) {
    *merged = (struct merged){area->pointer + block->at, block->id, gps_block_is_own(block), -1};
    if (merged->owned && gps_ops->block_export(block->memory, &merged->descriptor) != GPS_OK)
        merged->descriptor = -1;
}

/* Finds the next merged block by address. */
static bool next(struct merged *merged) {
    bool found = false;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area && !found; area = gps_area_next(area))
        for (unsigned i = 0; i < area->count && !found; i++)
            if ((found = is_next(area, &area->blocks[i], merged)))
                describe(area, &area->blocks[i], merged);
    return found;
}

static bool return_all(void) {
    struct merged merged = {.address = 0};
    bool all = true;
    while (next(&merged))
        all &= gps_shared_return(&merged.id, merged.owned, merged.descriptor);
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

/* --- how much is this process's own --- */

enum { GPUS = 32 }; /* those of higher numbers are not told */

static struct own {
    struct gps_id gpu;
    uint64_t bytes; /* as published */
    unsigned slot;
    bool taken;
} own[GPUS];
GPS_FORGOTTEN(own);
static uint64_t told; /* when */
GPS_FORGOTTEN(told);

static uint64_t own_bytes(const struct gps_area *area) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        const bool counts = block->state == GPS_BLOCK_PRIVATE || gps_block_is_frozen(block);
        bytes += counts ? block->size : 0;
    }
    return bytes;
}

static void count_own(uint64_t bytes[GPUS]) {
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->device >= 0 && area->device < GPUS) {
            bytes[area->device] += own_bytes(area);
            memcpy(&own[area->device].gpu, area->uuid, GPS_UUID_BYTES);
        }
}

static void publish_own(struct own *mine, uint64_t bytes) {
    if (!mine->taken && gps_references_begin(&mine->gpu, GPS_VIA_OWN, &mine->slot) < 0) {
        gps_references_end(mine->slot);
        return;
    }
    mine->taken = true;
    if (gps_references_commit(mine->slot, &mine->gpu, GPS_VIA_OWN, bytes, 0) == 0)
        mine->bytes = bytes;
}

static void tell_own(void) {
    uint64_t bytes[GPUS] = {0};
    const uint64_t now = gps_clock_monotonic();
    if (now - told < GPS_SECOND)
        return;
    told = now;
    count_own(bytes);
    for (unsigned gpu = 0; gpu < GPUS; gpu++)
        if (bytes[gpu] != own[gpu].bytes)
            publish_own(&own[gpu], bytes[gpu]);
}

void gps_keeper_watch_turn(void) {
    GPS_DRIVER_SCOPE();
    if (gps_membership_store())
        look();
    tell_of_removal();
    tell_own();
}
