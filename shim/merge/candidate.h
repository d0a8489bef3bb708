/*
 * candidate.h - a block on its way to be merged.
 *
 * A private block whose bytes have not changed for long enough is frozen; what follows needs no
 * haste, for nobody writes it any more: it is hashed once more, compared with the shared block of
 * that hash, if there is one, and replaced by it, or else offered as the shared block. A write of
 * the program's thaws it, and the candidate is forgotten.
 *
 * Inside a gps_scope, without a lock, where not said otherwise.
 */
#pragma once

#include "shared_block.h"

struct gps_candidate {
    uint64_t serial; /* of its area */
    uint64_t at;     /* in it */
    uint64_t pointer, context;
    uint64_t since; /* FROZEN: when it was */
    const struct gps_rule *rule;
    bool sure; /* copies from the host filled all of it */
    struct gps_shared_key key;
    struct gps_id id;
    unsigned slot;
    bool unanswered; /* an earlier offer was */
    uint64_t memory; /* of the shared block, to take its place; 0: none */
};

/* Its block, while it still is what it was; NULL: it was freed, thawed or swapped. With the lock of
 * area.h. */
struct gps_block *gps_candidate_block(const struct gps_candidate *candidate,
                                      struct gps_area **area);

/* What its bytes are now. With gps_swap_lock. False: it is freed or written meanwhile, or could not
 * be read. */
bool gps_candidate_look(struct gps_candidate *candidate);

/* Of a frozen block: offers it. True: there is a shared block like it instead, whose memory the
 * candidate has now. */
bool gps_candidate_settle(struct gps_candidate *candidate);
/* Lets go of the memory, if it did not take the block's place. */
void gps_candidate_finish(struct gps_candidate *candidate);
