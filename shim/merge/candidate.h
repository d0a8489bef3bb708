/*
 * candidate.h - a block on its way to be merged.
 *
 * A private block whose bytes have not changed for long enough is frozen. From then on nothing
 * writes it, so the other steps are not urgent. The block is hashed once more. If there is a shared
 * block of that hash, the two are compared, and the shared one takes its place; else the block is
 * offered as the shared one. A write of the program's thaws the block, and the candidate is
 * forgotten.
 *
 * Inside a gps_scope, without a lock unless a comment says otherwise.
 */
#pragma once

#include "shared_block.h"

struct gps_candidate {
    uint64_t serial; /* of its area */
    uint64_t pointer, context;
    uint64_t since;  /* FROZEN: when it was */
    uint64_t looked; /* PRIVATE: when its bytes were looked at */
    const struct gps_rule *rule;
    bool sure; /* copies from the host touched each 64th of it */
    struct gps_shared_key key;
    struct gps_id id;
    unsigned slot;
    bool unanswered; /* the keeper did not answer an earlier offer */
    uint64_t memory; /* of the shared block, to take its place; 0: none */
};

/* The candidate's block, while it still is what it was. NULL: it was freed, thawed or swapped. The
 * caller has the lock of area.h. */
struct gps_block *gps_candidate_block(const struct gps_candidate *candidate,
                                      struct gps_area **area);

/* Hashes its bytes, with gps_swap_lock. False: it was freed, written, or could not be read. */
bool gps_candidate_hash(struct gps_candidate *candidate);

/* Offers a frozen block. True: an equal shared block is there; the candidate has its memory. */
bool gps_candidate_share(struct gps_candidate *candidate);
/* Releases the shared block's memory, unless it took the block's place. */
void gps_candidate_finish(struct gps_candidate *candidate);
