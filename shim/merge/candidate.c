#include "candidate.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "block.h"
#include "digest/digest.h"
#include "driver/driver_ops.h"
#include "exclusion.h"
#include "gate/swap.h"
#include "log/event_log.h"

static bool is_the_same(const struct gps_candidate *candidate, const struct gps_block *block) {
    if (block->excluded)
        return false;
    return candidate->since ? gps_block_is_frozen(block) && block->swapped == candidate->since
                            : block->state == GPS_BLOCK_PRIVATE && !block->writers;
}

struct gps_block *gps_candidate_block(const struct gps_candidate *candidate,
                                      struct gps_area **area) {
    struct gps_block *block = gps_area_block(candidate->pointer, candidate->serial, area);
    return block && is_the_same(candidate, block) ? block : NULL;
}

/* The program may have freed the area before the caller took gps_swap_lock. */
static bool candidate_is_there(const struct gps_candidate *candidate, struct gps_area **area) {
    GPS_AREAS_LOCKED();
    return gps_candidate_block(candidate, area);
}

bool gps_candidate_hash(struct gps_candidate *candidate) {
    struct gps_digest digest = {0};
    struct gps_area *area;
    if (!candidate_is_there(candidate, &area) || gps_ops->enter(candidate->context) != GPS_OK)
        return false;
    const int code = gps_device_digest(candidate->pointer, candidate->key.size, &digest);
    gps_ops->leave();
    if (code == GPS_ILLEGAL_ADDRESS)
        gps_exclusion_record();
    candidate->key.hash = digest.hash;
    candidate->key.first = digest.first;
    return code == GPS_OK;
}

/* --- there is a shared block --- */

/* Whether the shared memory has the block's bytes. Both are read, if the rule says nothing else. */
static bool candidate_is_equal(const struct gps_candidate *candidate, const struct gps_area *area,
                               uint64_t memory) {
    uint64_t view;
    bool equal = false;
    if (candidate->rule->verify == GPS_VERIFY_OFF)
        return true;
    if (gps_block_view(area, memory, candidate->key.size, false, &view) != GPS_OK)
        return false;
    if (gps_device_equal(candidate->pointer, view, candidate->key.size, &equal) != GPS_OK)
        equal = false;
    gps_block_unview(view, candidate->key.size);
    return equal;
}

/* The caller has gps_swap_lock, so that the area, the block and the context stay. */
static bool candidate_compare(struct gps_candidate *candidate, int descriptor) {
    struct gps_area *area;
    bool equal = false;
    if (!candidate_is_there(candidate, &area) || gps_ops->enter(candidate->context) != GPS_OK)
        return false;
    if (gps_ops->block_import(descriptor, &candidate->memory) == GPS_OK &&
        !(equal = candidate_is_equal(candidate, area, candidate->memory))) {
        gps_ops->block_release(candidate->memory);
        candidate->memory = 0;
    }
    gps_ops->leave();
    return equal;
}

/* --- there is none --- */

/* From here on the program's writes go to a copy, so the memory that is offered does not change. */
static bool begin_offer(struct gps_candidate *candidate, int *descriptor) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = gps_candidate_block(candidate, &area);
    const bool begun = block && gps_ops->block_export(block->memory, descriptor) == GPS_OK;
    if (begun) {
        candidate->unanswered = block->state == GPS_BLOCK_UNANSWERED;
        gps_block_set_state(block, GPS_BLOCK_OFFERING);
        block->id = gps_shared_id(&candidate->key);
        block->slot = GPS_NO_SLOT;
    }
    return begun;
}

/* A block that was not offered stays frozen. Another process was quicker, or it is tried again. */
static void end_offer(const struct gps_candidate *candidate, int status) {
    struct gps_area *area;
    gps_area_lock();
    struct gps_block *block = gps_area_block(candidate->pointer, candidate->serial, &area);
    const bool still =
        block && block->state == GPS_BLOCK_OFFERING && block->swapped == candidate->since;
    if (still && status == 0) {
        gps_block_set_state(block, GPS_BLOCK_PROVIDED);
        block->slot = candidate->slot;
        gps_merged_sum_merged(block->size, 0);
    } else if (still) {
        const bool unanswered = candidate->unanswered || status == -ETIMEDOUT;
        gps_block_set_state(block, unanswered ? GPS_BLOCK_UNANSWERED : GPS_BLOCK_FROZEN);
    }
    gps_area_unlock();
    if (!still && status == 0)
        gps_shared_release(candidate->slot);
}

static void offer(struct gps_candidate *candidate) {
    int descriptor;
    if (!begin_offer(candidate, &descriptor))
        return;
    const int status = gps_shared_offer(&candidate->key, candidate->rule, descriptor,
                                        candidate->pointer, &candidate->id, &candidate->slot);
    close(descriptor);
    end_offer(candidate, status);
}

/* --- both --- */

bool gps_candidate_share(struct gps_candidate *candidate) {
    int descriptor;
    candidate->id = gps_shared_id(&candidate->key);
    const int status =
        gps_shared_get(&candidate->id, &candidate->key, &descriptor, &candidate->slot);
    if (status == -ENOENT)
        offer(candidate);
    if (status < 0)
        return false;
    gps_swap_lock();
    const bool equal = candidate_compare(candidate, descriptor);
    gps_swap_unlock();
    close(descriptor);
    if (!equal)
        gps_shared_release(candidate->slot);
    return equal;
}

void gps_candidate_finish(struct gps_candidate *candidate) {
    if (!candidate->memory)
        return;
    gps_ops->block_release(candidate->memory);
    gps_shared_release(candidate->slot);
}
