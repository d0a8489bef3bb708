#include "merger.h"

#include <errno.h>
#include <unistd.h>

#include "directory/orders.h"
#include "directory/processes.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "eviction.h"
#include "findings/reporter.h"
#include "gate/swap.h"
#include "keeper/keeper_client.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"
#include "vmm/vmm_region.h"

#define GET_WAIT (GPS_SECOND / 10)

/* The socket, by inode, of the keeper that has all blocks that were created here; and of the one
 * that has all merged blocks, or needs none because no process is suspended. */
static uint64_t known, complete;
GPS_FORGOTTEN(known);
GPS_FORGOTTEN(complete);

/* --- blocks that were created here --- */

static bool return_block(const struct gps_eviction *block) {
    int descriptor;
    if (gps_eviction_descriptor(block, &descriptor) != GPS_OK)
        return false;
    const bool returned = gps_vmm_region_return(&block->id, descriptor);
    close(descriptor);
    return returned;
}

static bool return_all(void) {
    struct gps_eviction block = {.address = 0};
    bool all = true;
    while (gps_eviction_next(&block))
        all &= !block.own || return_block(&block);
    return all;
}

/* --- blocks that other processes gave, and cannot give again --- */

/* A suspended process can have its blocks only from the keeper. */
static bool note_sleeper(void *any, const struct gps_proc *proc) {
    *(bool *)any = proc->alive && gps_answer_sleeps(gps_membership_store(), &proc->header.owner);
    return !*(bool *)any;
}

static bool anybody_sleeps(void) {
    bool any = false;
    return gps_proc_each(gps_membership_store(), note_sleeper, &any) != 0 || any;
}

/* If the device does not idle, the block stays as it is, and the copy is the keeper's alone. */
static void map_copy(const struct gps_eviction *block, uint64_t memory, const _Atomic bool *stop) {
    bool mapped = false;
    if (gps_stall_begin(stop)) {
        mapped = gps_eviction_replace(block, memory) == GPS_OK;
        gps_stall_end();
    }
    if (!mapped)
        gps_ops->block_release(memory);
}

static int eviction_block_give(const struct gps_eviction *block, uint64_t memory) {
    int descriptor;
    if (gps_ops->block_export(memory, &descriptor) != GPS_OK)
        return -ENOTSUP;
    const int status = gps_vmm_region_give(&block->id, descriptor);
    close(descriptor);
    return status;
}

/* False: there is no memory for it, or the keeper does not take it just now. */
static bool give_copy(const struct gps_eviction *block, const _Atomic bool *stop) {
    uint64_t memory;
    gps_swap_lock();
    const int code = *stop ? GPS_DEINITIALIZED : gps_eviction_copy(block, &memory);
    gps_swap_unlock();
    if (code != GPS_OK)
        return code == GPS_INVALID_VALUE; /* the block is not another process's any more */
    const int status = eviction_block_give(block, memory);
    if (status == 0)
        map_copy(block, memory, stop);
    else
        gps_ops->block_release(memory);
    return status == 0 || status == -EEXIST || status == -ENOENT;
}

/* A new keeper waits a moment for those that gave the blocks, and answers -EAGAIN until then. */
static bool give_what_is_lost(const _Atomic bool *stop) {
    struct gps_eviction block = {.address = 0};
    bool all = true;
    while (all && !*stop && gps_eviction_next(&block)) {
        int descriptor;
        const int status = block.own ? -EEXIST
                                     : gps_keeper_get(gps_membership_store(), &block.id,
                                                      gps_process_self(), GET_WAIT, &descriptor);
        if (status == 0)
            close(descriptor);
        else if (!block.own)
            all = status == -ENOENT && give_copy(&block, stop);
    }
    return all;
}

static void keeper_watch_look(const _Atomic bool *stop) {
    const uint64_t socket = gps_keeper_other(gps_membership_store(), gps_process_self(), 0);
    if (socket && socket != known && return_all())
        known = socket;
    if (socket && socket == known && socket != complete &&
        (!anybody_sleeps() || give_what_is_lost(stop)))
        complete = socket;
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

void gps_keeper_watch_turn(const _Atomic bool *stop) {
    GPS_DRIVER_SCOPE();
    if (gps_membership_store())
        keeper_watch_look(stop);
    tell_of_removal();
}
