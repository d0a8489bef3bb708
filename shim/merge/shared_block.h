/*
 * shared_block.h - the one copy of equal blocks: the keeper's region, named by its bytes.
 *
 * Its handle is made of GPU, size and hash, so every process that has such bytes knows its id, and
 * finds its record with one open. Its name tells the hash of its first chunk, by which the first
 * bytes of a copy find a block that they are likely to belong to.
 * Creator and importers have a slot each, as for any region of the keeper's (vmm/vmm_region.h);
 * `keep` says how long it stays without them.
 *
 * Any thread may call these functions, inside a gps_scope and without the lock of area.h, unless
 * their comment says otherwise: a call may take as long as the keeper does. They return 0 or
 * -errno.
 */
#pragma once

#include "area.h"

struct gps_shared_key {
    uint8_t uuid[GPS_UUID_BYTES];
    uint64_t size;
    struct gps_hash hash;
    struct gps_hash first; /* of its first chunk */
};

/* Whether this process is in the directory and hashes with its key, which the first call gets. A
 * key that cannot be had is told once and tried again after a second: until then nothing is merged.
 */
bool gps_shared_ready(void);
/* Whether the last try to join the directory and get the key failed. False: also before any. */
bool gps_shared_is_unusable(void);
/* Why the last block, within the last seconds, could not be offered or had. 0: it could. */
enum gps_not_merging gps_shared_refusal(void);

struct gps_id gps_shared_id(const struct gps_shared_key *key);

/* What the slot of a block tells of it beside its id (gps_slot.block): GPU and size. */
uint64_t gps_shared_mark(const uint8_t uuid[GPS_UUID_BYTES], uint64_t size);
#define GPS_SHARED_MADE UINT64_C(0x8000) /* this process made it, though the keeper has it now */
static inline uint64_t gps_shared_marked_size(uint64_t mark) {
    return (mark & 0x7fff) << 20;
}
/* Whether it is of the GPU that the other one is of. */
static inline bool gps_shared_is_marked(uint64_t mark, uint64_t as) {
    return (mark & 0xffff) && mark >> 16 == as >> 16;
}
/* How often slots of this process's blocks have changed. */
uint64_t gps_shared_changes(void);

/* Finds the shared block that is named after this first chunk. False: there is none. */
bool gps_shared_find(const struct gps_shared_key *key, struct gps_id *id);
/* A descriptor of the block's memory, the caller's, after a slot was published. -ENOENT: there is
 * no such block of the key's GPU and size. */
int gps_shared_get(const struct gps_id *id, const struct gps_shared_key *key, int *descriptor,
                   unsigned *slot);
/* The block is mapped now, or is about to be: the slot says where. So steady.h, which adds up what
 * all processes save, sees the slot no later than the memory that it frees. With area.h's lock
 * where another thread could make it private: the slot may be another block's after that. */
void gps_shared_commit(const struct gps_id *id, unsigned slot, uint64_t mark, uint64_t address);
/* Offers memory that is never written again to the keeper. -EEXIST: another process was faster. */
int gps_shared_offer(const struct gps_shared_key *key, const struct gps_rule *rule, int descriptor,
                     uint64_t address, struct gps_id *id, unsigned *slot);
/* A block that was shared is written: it is private from now on. With the lock of area.h. */
void gps_shared_leave(struct gps_block *block);
/* The block is not mapped here any more, or never was. */
void gps_shared_release(unsigned slot);
