#include "offload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "carrier.h"
#include "directory/orders.h"
#include "directory/processes.h"
#include "directory/record.h"
#include "driver/driver_ops.h"
#include "keeper/keeper_client.h"
#include "merge/eviction.h"
#include "process/control_group.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "vmm/vmm_region.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)
#define SPARE (UINT64_C(256) << 20) /* of main memory, beside a 64th */
#define ASKED (GPS_SECOND / 5)      /* for the keeper's answer; an older keeper hangs up */
enum { BATCH = 256 /* descriptors at a time */ };

/* Blocks that are copied at once. */
static struct batch {
    struct gps_load loads[BATCH];
    struct gps_id ids[BATCH];
    size_t count;
} batch;
GPS_FORGOTTEN(batch);

static void batch_add(const struct gps_eviction *block, int memfd) {
    batch.loads[batch.count] =
        (struct gps_load){.address = block->address, .size = block->size, .file = memfd};
    batch.ids[batch.count++] = block->id;
}

/* --- which blocks --- */

struct mine {
    struct gps_eviction block;
    bool runs; /* a running process has it, too */
};
struct all {
    struct mine *mine; /* by id, each once */
    size_t count;
    bool unknown;
};

static int offload_by_id(const void *left, const void *right) {
    const struct mine *a = left, *b = right;
    return memcmp(&a->block.id, &b->block.id, sizeof(a->block.id));
}

static void offload_list(struct all *all) {
    struct gps_eviction block = {.address = 0};
    size_t count = 0, unique = 0;
    while (gps_eviction_next(&block))
        count++;
    all->mine = calloc(count + 1, sizeof(*all->mine));
    block = (struct gps_eviction){.address = 0};
    for (all->count = 0; all->mine && all->count < count && gps_eviction_next(&block);)
        all->mine[all->count++].block = block;
    if (all->mine)
        qsort(all->mine, all->count, sizeof(*all->mine), offload_by_id);
    for (size_t i = 0; i < all->count; i++)
        if (!i || offload_by_id(&all->mine[unique - 1], &all->mine[i]) != 0)
            all->mine[unique++] = all->mine[i];
    all->count = unique;
}

static bool process_is_gone(const struct gps_owner *process) {
    struct gps_answer_file answer;
    return gps_answer_read(gps_membership_store(), process, &answer) == 0 &&
           answer.state == GPS_ANSWER_GONE;
}

static bool offload_look_at_process(void *arg, const struct gps_proc *proc) {
    struct all *all = arg;
    if (!proc->alive || gps_owner_equal(&proc->header.owner, gps_process_self()) ||
        (!proc->unknown && process_is_gone(&proc->header.owner)))
        return true;
    all->unknown |= proc->unknown;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct mine key = {.block.id = proc->slots[i].region};
        struct mine *found = gps_slot_has_region(&proc->slots[i])
                                 ? bsearch(&key, all->mine, all->count, sizeof(key), offload_by_id)
                                 : NULL;
        if (found)
            found->runs = true;
    }
    return !all->unknown;
}

/* The merged blocks that no running process has but this one. */
static struct all offload_find(void) {
    struct all all = {.mine = NULL};
    size_t left = 0;
    offload_list(&all);
    if (all.count && gps_proc_each(gps_membership_store(), offload_look_at_process, &all) != 0)
        all.unknown = true;
    for (size_t i = 0; i < all.count && !all.unknown; i++)
        if (!all.mine[i].runs)
            all.mine[left++] = all.mine[i];
    all.count = left;
    return all;
}

/* --- out --- */

static int offload_tell_keeper(const struct gps_id *id, int memfd) {
    return gps_keeper_offload(gps_membership_store(), id, gps_process_self(), memfd, ASKED);
}

/* False: no descriptor is left. */
static bool batch_prepare(const struct gps_eviction *block) {
    const int memfd = memfd_create("gpushare-block", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd >= 0)
        batch_add(block, memfd);
    return memfd >= 0;
}

/* Whether main memory is left: when it runs out the kernel kills, without an error. */
static bool offload_has_main_memory(uint64_t bytes) {
    uint64_t left;
    return gps_main_memory_left(0, &left) && left >= bytes + bytes / 64 + SPARE;
}

/* Returns the bytes that have left the GPU. */
static uint64_t batch_carry_out(void) {
    uint64_t bytes = 0;
    const bool copied = batch.count && gps_carry(batch.loads, batch.count, GPS_WAY_OUT) == GPS_OK;
    for (size_t i = 0; i < batch.count; i++) {
        const struct gps_load *load = &batch.loads[i];
        if (copied && fcntl(load->file, F_ADD_SEALS, SEALS) == 0 &&
            offload_tell_keeper(&batch.ids[i], load->file) == 0)
            bytes += load->size;
        close(load->file);
    }
    batch.count = 0;
    return bytes;
}

/* Copies blocks whose bytes the keeper lacks, as many at a time as descriptors and memory allow. */
static uint64_t offload_bring_out(const struct all *all) {
    uint64_t bytes = 0, planned = 0;
    int status = 0;
    for (size_t i = 0; i < all->count && (status == 0 || status == -ENODATA); i++) {
        const struct gps_eviction *block = &all->mine[i].block;
        status = offload_tell_keeper(&block->id, -1);
        bytes += status == 0 ? block->size : 0;
        if (status != -ENODATA)
            continue;
        if (batch.count == BATCH || !offload_has_main_memory(planned + block->size) ||
            !batch_prepare(block)) {
            bytes += batch_carry_out();
            planned = 0;
            if (!offload_has_main_memory(block->size) || !batch_prepare(block))
                break;
        }
        planned += block->size;
    }
    return bytes + batch_carry_out();
}

/* Any of the blocks' contexts copies them all: they are on one GPU. */
uint64_t gps_offload(void) {
    struct all all = offload_find();
    uint64_t bytes = 0;
    if (all.count && gps_eviction_enter(all.mine[0].block.address) == GPS_OK) {
        bytes = offload_bring_out(&all);
        gps_ops->leave();
    }
    free(all.mine);
    return bytes;
}

/* --- in --- */

/* 0: the block is in the batch. The driver's code, or -errno. */
static int reload_make(const struct gps_eviction *block, uint64_t keep) {
    int memfd;
    int status = gps_keeper_reload(gps_membership_store(), &block->id, gps_process_self(), keep,
                                   ASKED, &memfd);
    if (status != 0)
        return status;
    status = gps_eviction_make(block->address);
    if (status == GPS_OK)
        batch_add(block, memfd);
    else
        close(memfd);
    return status;
}

static int reload_deposit(size_t i) {
    int descriptor;
    int code = gps_eviction_seal(batch.loads[i].address, &descriptor);
    if (code != GPS_OK)
        return code;
    code = gps_vmm_region_give(&batch.ids[i], descriptor);
    close(descriptor);
    return code;
}

/* A block that the keeper does not take, as where another process was faster, stays evicted:
 * *later. */
static int carry_in(bool *later) {
    int code = batch.count ? gps_eviction_enter(batch.loads[0].address) : GPS_OK;
    const bool entered = batch.count && code == GPS_OK;
    if (entered) {
        code = gps_carry(batch.loads, batch.count, GPS_WAY_BACK);
        gps_ops->leave();
    }
    for (size_t i = 0; i < batch.count; i++) {
        close(batch.loads[i].file);
        const int status = code == GPS_OK ? reload_deposit(i) : code;
        gps_eviction_made(batch.loads[i].address, status == 0);
        *later |= status < 0;
        code = code == GPS_OK && status > 0 ? status : code;
    }
    batch.count = 0;
    return code;
}

static enum gps_taken reload_fail(struct gps_text *why, int code) {
    gps_text_str(why, code == GPS_OUT_OF_MEMORY
                          ? "there is no room on the GPU for its merged blocks"
                          : "its merged blocks were not brought back by the driver: error ");
    if (code != GPS_OUT_OF_MEMORY)
        gps_text_dec(why, (uint64_t)code);
    return code == GPS_OUT_OF_MEMORY || code == GPS_DEINITIALIZED ? GPS_TAKEN_LATER
                                                                  : GPS_TAKEN_LOST;
}

/* The blocks that are made go to the keeper, for other processes, before a failure counts. */
enum gps_taken gps_reload(uint64_t keep, struct gps_text *why) {
    struct gps_eviction block = {.address = 0};
    bool later = false;
    int code = GPS_OK, carried = GPS_OK;
    while (code <= GPS_OK && carried == GPS_OK && gps_eviction_next(&block)) {
        if (!block.evicted)
            continue;
        code = reload_make(&block, keep);
        if (batch.count == BATCH || (code == -EMFILE && batch.count))
            carried = carry_in(&later);
        later |= code < 0;
    }
    if (carried == GPS_OK)
        carried = carry_in(&later);
    if (carried != GPS_OK || code > GPS_OK)
        return reload_fail(why, carried != GPS_OK ? carried : code);
    if (later)
        gps_text_str(why, "its merged blocks are brought back by another process just now");
    return later ? GPS_TAKEN_LATER : GPS_TAKEN;
}
