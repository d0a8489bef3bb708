#include "load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backing.h"
#include "block.h"
#include "digest/digest.h"
#include "directory/record.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "layout.h"
#include "merger.h"
#include "not_merging.h"
#include "shared_block.h"
#include "util/clock.h"
#include "writable.h"

#define RUN        (UINT64_C(256) << 20)
#define BACKLOG    (UINT64_C(256) << 20) /* copied and perhaps not yet merged: then it is */
#define LOCK_250MS (GPS_SECOND / 4)      /* a kernel of ours may wait for one that fills the card */
#define SLOW       40000                 /* ns, to read and hash a chunk */

/* The part of a copy that goes into one block. */
struct piece {
    uint64_t to, size, stream;
    const uint8_t *from;
    uint64_t serial, context;
    uint64_t at;   /* in the block */
    uint8_t state; /* of the block, as it was */
    bool excluded; /* it is never merged */
    bool pinned;   /* the memory that is read */
    struct gps_shared_key key;
    struct gps_digest_work *hashing; /* of its bytes, since a shared block began like it; or NULL */
};

/* The whole range lies in an allocation whose blocks get memory when they are needed. */
static bool is_lazy(uint64_t address, uint64_t size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    return area && area->lazy && !area->freed && !gps_area_overrun(area, address, size);
}

/* The copy comes from pageable memory, or from pinned memory and has ended when the call returns.
 * Looks the memory up, which takes the areas' lock. */
static bool is_of_host(const struct gps_write *write, bool *pinned) {
    const uintptr_t from = (uintptr_t)write->from;
    const enum gps_memory_kind kind = gps_ops->kind(from);
    *pinned = !write->ordered && kind == GPS_MEMORY_HOST &&
              gps_ops->kind(from + write->size - 1) == GPS_MEMORY_HOST;
    return *pinned || kind == GPS_MEMORY_UNKNOWN;
}

bool gps_load_takes(const struct gps_write *write, bool *pinned) {
    return write->kind != GPS_WRITE_OTHER && write->from && !write->list && write->size &&
           gps_area_near(write->to, write->size) && is_lazy(write->to, write->size) &&
           is_of_host(write, pinned) &&
           !gps_streams_any_capturing(); /* waiting for a stream can end a capture */
}

static void piece_describe(const struct gps_write *write, const struct gps_area *area, uint64_t to,
                           struct piece *piece) {
    const uint64_t left = write->to + write->size - to;
    unsigned first, end;
    gps_area_blocks(area, to, 1, &first, &end);
    const struct gps_block *block = &area->blocks[first];
    const uint64_t at = to - area->pointer - block->at;
    *piece = (struct piece){.to = to,
                            .size = left < block->size - at ? left : block->size - at,
                            .stream = write->stream,
                            .from = (const uint8_t *)write->from + (to - write->to),
                            .serial = area->serial,
                            .context = area->context,
                            .at = at,
                            .state = block->state,
                            .excluded = block->excluded,
                            .key.size = block->size};
    memcpy(piece->key.uuid, area->uuid, GPS_UUID_BYTES);
}

/* Describes the copy's part from `to` on, and returns its size. 0: no area is there any more. */
static uint64_t piece_cut(const struct gps_write *write, uint64_t to, struct piece *piece) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(to);
    if (area)
        piece_describe(write, area, to, piece);
    return area ? piece->size : 0;
}

/* The block of the piece. NULL: it was cut anew meanwhile. */
static struct gps_block *piece_block(const struct piece *piece, struct gps_area **area) {
    struct gps_block *block = gps_area_block(piece->to - piece->at, piece->serial, area);
    return block && block->size == piece->key.size ? block : NULL;
}

/* Blocks begin and end where the copy does. */
static void load_fit_blocks(const struct gps_write *write) {
    GPS_DRIVER_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(write->to);
    if (area && !gps_area_overrun(area, write->to, write->size) && gps_area_enter(area) == GPS_OK) {
        gps_layout_note(area, write->to, write->size);
        gps_ops->leave();
    }
}

/* --- a shared block that begins like the piece --- */

/* A shared block that this process may map. */
struct offer {
    struct gps_id id;
    int descriptor; /* -1: there is none */
    unsigned slot;
};

static bool offer_get(const struct piece *piece, struct offer *offer) {
    if (gps_shared_get(&offer->id, &piece->key, &offer->descriptor, &offer->slot) < 0)
        offer->descriptor = -1;
    return offer->descriptor >= 0;
}

static void decline(struct offer *offer) {
    if (offer->descriptor < 0)
        return;
    close(offer->descriptor);
    offer->descriptor = -1;
    gps_shared_release(offer->slot);
}

static bool piece_is_whole(const struct piece *piece) {
    return !piece->at && piece->size == piece->key.size;
}

/* A piece that brings all bytes of the shared block needs no copy after that. */
static bool piece_adopt(const struct piece *piece, const struct offer *offer, uint64_t memory) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = piece_block(piece, &area);
    if (!block || block->state != GPS_BLOCK_UNBACKED || block->excluded)
        return false;
    gps_shared_commit(&offer->id, offer->slot, gps_shared_mark(piece->key.uuid, piece->key.size),
                      piece->to);
    if (gps_block_adopt(area, block, memory) != GPS_OK)
        return false;
    block->id = offer->id;
    block->slot = offer->slot;
    if (piece_is_whole(piece)) {
        gps_area_fill(area, block, piece->to, piece->size);
        block->written = gps_clock_monotonic();
        gps_merge_share(block);
    }
    return true;
}

static bool map_shared(const struct piece *piece, struct offer *offer) {
    uint64_t memory = 0;
    if (gps_ops->block_import(offer->descriptor, &memory) == GPS_OK &&
        piece_adopt(piece, offer, memory)) {
        close(offer->descriptor);
        return true;
    }
    if (memory)
        gps_ops->block_release(memory);
    decline(offer);
    return false;
}

/* All bytes of a block are known: their hash tells the shared block that is mapped. The one that
 * was got meanwhile only begins alike, perhaps. */
static bool map_whole(struct piece *piece, struct offer *offer) {
    struct gps_digest digest;
    const bool read = gps_digest_finish(piece->hashing, &digest);
    piece->hashing = NULL;
    if (!read) {
        decline(offer);
        return false;
    }
    piece->key.hash = digest.hash;
    const struct gps_id id = gps_shared_id(&piece->key);
    if (!gps_id_equal(&id, &offer->id)) {
        decline(offer);
        offer->id = id;
        offer_get(piece, offer);
    }
    return offer->descriptor >= 0 && map_shared(piece, offer);
}

static bool piece_is_readable(const struct piece *piece, const void *bytes, uint64_t size) {
    return piece->pinned || gps_digest_readable(bytes, size);
}

/* Hashes the first chunk, if the processor may read it. Pinned memory that it does not cache is
 * read so slowly that a copy is faster. */
static bool hash_first(struct piece *piece) {
    const uint64_t begun = gps_clock_monotonic();
    if (!piece_is_readable(piece, piece->from, GPS_DIGEST_CHUNK))
        return false;
    piece->key.first = gps_digest_chunk(piece->from);
    return !piece->pinned || gps_clock_monotonic() - begun < SLOW;
}

/* Hashes the bytes while the shared block is asked for. True: it is mapped, and has all of them. */
static bool look_for_shared(struct piece *piece) {
    struct offer offer;
    if (piece->state != GPS_BLOCK_UNBACKED || piece->excluded || piece->at ||
        piece->size < GPS_DIGEST_CHUNK || gps_pause_is_on() || !gps_shared_ready() ||
        !hash_first(piece) || !gps_shared_find(&piece->key, &offer.id))
        return false;
    piece->hashing = gps_digest_begin(piece->from, piece->size / GPS_DIGEST_CHUNK, piece->pinned);
    if (!offer_get(piece, &offer) && !piece_is_whole(piece))
        return false;
    if (piece_is_whole(piece) && piece->hashing)
        return map_whole(piece, &offer);
    if (piece_is_whole(piece))
        decline(&offer);
    else
        map_shared(piece, &offer);
    return false;
}

/* --- comparing: with gps_swap_lock, so that the block stays what it is --- */

/* Others may have moved the block in the array. False: it is gone, with its context. */
static bool keep_chunks(const struct piece *piece, struct gps_hash *chunks) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = piece_block(piece, &area);
    if (block)
        block->chunks = chunks;
    return block;
}

static const struct gps_hash *make_chunks(const struct piece *piece) {
    const uint64_t size = piece->key.size;
    struct gps_hash *chunks = malloc(size / GPS_DIGEST_CHUNK * sizeof(*chunks));
    if (chunks && gps_device_hash(piece->to - piece->at, size, chunks) == GPS_OK &&
        keep_chunks(piece, chunks))
        return chunks;
    free(chunks);
    return NULL;
}

/* Compares bytes that do not fill a chunk: they are read back. */
static bool piece_is_same(const struct piece *piece, uint64_t at, uint64_t size) {
    static uint8_t there[GPS_DIGEST_CHUNK]; /* one at a time */
    const uint8_t *here = piece->from + (at - piece->at);
    if (!size)
        return true;
    return piece_is_readable(piece, here, size) &&
           gps_ops->copy_out(there, piece->to + (at - piece->at), size) == GPS_OK &&
           memcmp(there, here, size) == 0;
}

static bool has_hashes(struct piece *piece, uint64_t first, uint64_t last,
                       const struct gps_hash *chunks) {
    struct gps_digest_work *hashing = piece->hashing;
    if (!hashing)
        return gps_digest_compare(piece->from + (first * GPS_DIGEST_CHUNK - piece->at),
                                  last - first, piece->pinned, chunks + first);
    piece->hashing = NULL;
    return gps_digest_end(hashing, chunks);
}

static bool piece_is_equal(struct piece *piece, const struct gps_hash *chunks) {
    const uint64_t end = piece->at + piece->size;
    const uint64_t first = (piece->at + GPS_DIGEST_CHUNK - 1) / GPS_DIGEST_CHUNK;
    const uint64_t last = end / GPS_DIGEST_CHUNK;
    if (first >= last) {
        const uint64_t edge = first * GPS_DIGEST_CHUNK < end ? first * GPS_DIGEST_CHUNK : end;
        return piece_is_same(piece, piece->at, edge - piece->at) &&
               piece_is_same(piece, edge, end - edge);
    }
    const uint64_t from = first * GPS_DIGEST_CHUNK, to = last * GPS_DIGEST_CHUNK;
    return piece_is_same(piece, piece->at, from - piece->at) &&
           piece_is_same(piece, to, end - to) && has_hashes(piece, first, last, chunks);
}

/* Merges the block when copies have brought all of it. */
static void note_equal(const struct piece *piece) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = piece_block(piece, &area);
    if (!block)
        return; /* its context is gone */
    gps_area_fill(area, block, piece->to, piece->size);
    block->written = gps_clock_monotonic();
    if (block->state == GPS_BLOCK_SPECULATIVE && gps_block_is_full(block))
        gps_merge_share(block);
}

/* Whether the block's memory is never written. *chunks: its bytes' hashes, if known. */
static bool is_shared(const struct piece *piece, const struct gps_hash **chunks) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    const struct gps_block *block = piece_block(piece, &area);
    *chunks = block ? block->chunks : NULL;
    return block && (block->state == GPS_BLOCK_OFFERING || gps_block_is_merged(block) ||
                     block->state == GPS_BLOCK_SPECULATIVE);
}

static bool piece_compare(struct piece *piece) {
    const struct gps_hash *chunks;
    if (!is_shared(piece, &chunks))
        return false;
    if (!chunks)
        chunks = make_chunks(piece);
    if (!chunks || !piece_is_equal(piece, chunks))
        return false;
    note_equal(piece);
    return true;
}

/* Threads that load new blocks do not wait for each other. *looks: whether gps_swap_lock, to
 * compare, is to be had soon. */
static bool piece_is_there(struct piece *piece, bool *looks) {
    const struct gps_hash *unused;
    bool there = look_for_shared(piece);
    if (!there && is_shared(piece, &unused) && (*looks = gps_swap_lock_within(LOCK_250MS))) {
        there = piece_compare(piece);
        gps_swap_unlock();
    }
    if (piece->hashing)
        (void)gps_digest_end(piece->hashing, NULL);
    return there;
}

/* --- the copy --- */

/* Pieces that are to be copied and lie side by side are copied together. */
struct run {
    uint64_t to, size, stream;
    const uint8_t *from;
};

static _Atomic uint64_t backlog; /* copied, by all calls, since the merger was last waited for */

static int run_copy(const struct run *run) {
    struct gps_gate_pass pass;
    int code = gps_writable_begin(run->to, run->size, true, false);
    if (code != GPS_OK)
        return code;
    gps_gate_enter(&pass, run->stream);
    gps_streams_note(pass.slot, run->stream);
    code = gps_ops->upload(run->to, run->from, run->size, run->stream);
    gps_gate_leave(&pass);
    gps_writable_end(run->to, run->size);
    return code;
}

/* Other processes may need the memory that merging frees. */
static bool is_overcommitted(uint64_t address, uint64_t serial) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_of(address, serial);
    return area && area->rule->overcommit;
}

static int flush(struct run *run, uint64_t serial) {
    if (!run->size)
        return GPS_OK;
    const int code = run_copy(run);
    const uint64_t copied = atomic_fetch_add(&backlog, run->size) + run->size;
    run->size = 0;
    if (copied >= BACKLOG)
        atomic_store(&backlog, 0);
    if (copied >= BACKLOG && is_overcommitted(run->to, serial))
        gps_merger_run(serial);
    else
        gps_merger_wake();
    return code;
}

/* The work is inside a scope, but for the copy itself, which a signal may interrupt. */
static int load_piece(struct piece *piece, struct run *run, bool *looks) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, piece->context);
    const bool there = code == GPS_OK && *looks && piece_is_there(piece, looks);
    gps_scope_end(&scope);
    if (code != GPS_OK || there)
        return code == GPS_OK ? flush(run, piece->serial) : code;
    if (!run->size) {
        run->to = piece->to;
        run->from = piece->from;
    }
    run->size += piece->size;
    return run->size >= RUN ? flush(run, piece->serial) : GPS_OK;
}

/* While a graph is captured the legacy stream has nothing to do. */
static int load_wait_for_stream(uint64_t stream) {
    const int code = gps_ops->stream_wait(stream);
    return gps_code_is_of_capture(code) ? GPS_OK : code;
}

/* A synchronous copy waits for what its stream has to do, whether it is made or not; and, from
 * pinned memory, for itself. */
int gps_load(const struct gps_write *write, bool pinned) {
    struct piece piece = {.serial = 0};
    struct run run = {.stream = write->stream};
    uint64_t size;
    int code = write->ordered ? GPS_OK : load_wait_for_stream(write->stream);
    bool looks = true;
    load_fit_blocks(write);
    for (uint64_t at = 0; code == GPS_OK && at < write->size; at += size) {
        size = piece_cut(write, write->to + at, &piece);
        piece.pinned = pinned;
        code = size ? load_piece(&piece, &run, &looks) : GPS_INVALID_VALUE;
    }
    if (code == GPS_OK)
        code = flush(&run, piece.serial);
    return code == GPS_OK && pinned ? load_wait_for_stream(write->stream) : code;
}
