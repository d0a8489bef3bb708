/* load.c - see load.h. */
#include "load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation.h"
#include "block.h"
#include "digest/device_digest.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "layout.h"
#include "merger.h"
#include "shared_block.h"
#include "unmerge.h"
#include "util/clock.h"

#define RUN     (UINT64_C(256) << 20)
#define BACKLOG (UINT64_C(256) << 20) /* copied and perhaps not yet merged: then it is */

/* The part of a copy that goes into one block. */
struct piece {
    uint64_t to, size, stream;
    const uint8_t *from;
    uint64_t serial, context;
    uint64_t block; /* where it begins in its area */
    uint64_t at;    /* in the block */
    uint8_t state;  /* of the block, as it was */
    bool excluded;  /* it is never merged */
    struct gps_shared_key key;
    struct gps_digest_work *hashing; /* of its bytes, since a shared block began like it; or NULL */
};

/* All of it lies in an allocation whose blocks get memory when they are needed. */
static bool is_lazy(uint64_t address, uint64_t size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    return area && area->lazy && !area->freed && !gps_area_overrun(area, address, size);
}

bool gps_load_takes(const struct gps_write *write) {
    return write->kind != GPS_WRITE_OTHER && write->from && !write->list && write->rows <= 1 &&
           write->size && gps_area_near(write->to, write->size) &&
           is_lazy(write->to, write->size) &&
           gps_ops->kind((uintptr_t)write->from) == GPS_MEMORY_UNKNOWN &&
           !gps_streams_capturing(); /* waiting for a stream can end a capture */
}

static void describe(const struct gps_write *write, const struct gps_area *area, uint64_t to,
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
                            .block = block->at,
                            .at = at,
                            .state = block->state,
                            .excluded = block->excluded,
                            .key.size = block->size};
    memcpy(piece->key.uuid, area->uuid, GPS_UUID_BYTES);
}

/* Describes the part of the copy that begins at `to`, and returns its size. 0: the address lies in
 * no area any more. */
static uint64_t cut(const struct gps_write *write, uint64_t to, struct piece *piece) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(to);
    if (area)
        describe(write, area, to, piece);
    return area ? piece->size : 0;
}

/* The block of the piece. NULL: it was cut anew meanwhile. */
static struct gps_block *block_of(const struct piece *piece, struct gps_area **area) {
    struct gps_block *block = gps_area_block(piece->serial, piece->block, area);
    return block && block->size == piece->key.size ? block : NULL;
}

/* Blocks begin and end where the copy does, if it is large. */
static void fit(const struct gps_write *write) {
    if (write->size < GPS_MERGE_TENSOR)
        return;
    GPS_SCOPE();
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_at(write->to);
    if (area) {
        gps_layout_note(area, write->to, write->size);
        gps_layout_fit(area);
    }
    gps_area_unlock();
    gps_swap_unlock();
}

/* --- a shared block that begins like the piece --- */

static bool adopt(const struct piece *piece, const struct gps_id *id, unsigned slot,
                  uint64_t memory) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_of(piece, &area);
    const bool adopted = block && block->state == GPS_BLOCK_UNBACKED &&
                         gps_block_adopt(area, block, memory) == GPS_OK;
    if (adopted) {
        block->id = *id;
        block->slot = slot;
        gps_shared_commit(id, slot, false, piece->to);
    }
    return adopted;
}

static void map_shared(const struct piece *piece, const struct gps_id *id) {
    int descriptor;
    unsigned slot;
    uint64_t memory = 0;
    if (gps_shared_get(id, &piece->key, &descriptor, &slot) < 0)
        return;
    const bool mapped =
        gps_ops->block_import(descriptor, &memory) == GPS_OK && adopt(piece, id, slot, memory);
    close(descriptor);
    if (mapped)
        return;
    if (memory)
        gps_ops->block_release(memory);
    gps_shared_release(id, slot, false);
}

/* The bytes of the copy are hashed while the shared block is mapped. */
static void look_for_shared(struct piece *piece) {
    struct gps_id id;
    if (piece->state != GPS_BLOCK_UNBACKED || piece->excluded || piece->at ||
        piece->size < GPS_DIGEST_CHUNK || !gps_shared_ready() ||
        !gps_digest_readable(piece->from, GPS_DIGEST_CHUNK))
        return;
    piece->key.first = gps_digest_chunk(piece->from);
    if (!gps_shared_find(&piece->key, &id))
        return;
    piece->hashing = gps_digest_begin(piece->from, piece->size / GPS_DIGEST_CHUNK);
    map_shared(piece, &id);
}

/* --- comparing: with gps_swap_lock, so that the block stays what it is --- */

static const struct gps_hash *chunks_of(struct gps_block *block, uint64_t pointer) {
    const uint64_t count = block->size / GPS_DIGEST_CHUNK;
    if (block->chunks)
        return block->chunks;
    struct gps_hash *chunks = malloc(count * sizeof(*chunks));
    if (chunks && gps_device_hash(pointer, block->size, chunks) == GPS_OK)
        return block->chunks = chunks;
    free(chunks);
    return NULL;
}

/* Compares bytes that do not fill a chunk: they are read back. */
static bool is_same(const struct piece *piece, uint64_t at, uint64_t size) {
    static uint8_t there[GPS_DIGEST_CHUNK]; /* one at a time */
    const uint8_t *here = piece->from + (at - piece->at);
    if (!size)
        return true;
    return gps_digest_readable(here, size) &&
           gps_ops->copy_out(there, piece->to + (at - piece->at), size) == GPS_OK &&
           memcmp(there, here, size) == 0;
}

static bool has_hashes(struct piece *piece, uint64_t first, uint64_t last,
                       const struct gps_hash *chunks) {
    struct gps_digest_work *hashing = piece->hashing;
    if (!hashing)
        return gps_digest_compare(piece->from + (first * GPS_DIGEST_CHUNK - piece->at),
                                  last - first, chunks + first);
    piece->hashing = NULL;
    return gps_digest_end(hashing, chunks);
}

static bool is_equal(struct piece *piece, const struct gps_hash *chunks) {
    const uint64_t end = piece->at + piece->size;
    const uint64_t first = (piece->at + GPS_DIGEST_CHUNK - 1) / GPS_DIGEST_CHUNK;
    const uint64_t last = end / GPS_DIGEST_CHUNK;
    if (first >= last) {
        const uint64_t edge = first * GPS_DIGEST_CHUNK < end ? first * GPS_DIGEST_CHUNK : end;
        return is_same(piece, piece->at, edge - piece->at) && is_same(piece, edge, end - edge);
    }
    const uint64_t from = first * GPS_DIGEST_CHUNK, to = last * GPS_DIGEST_CHUNK;
    return is_same(piece, piece->at, from - piece->at) && is_same(piece, to, end - to) &&
           has_hashes(piece, first, last, chunks);
}

/* When copies have brought all of it, the block is merged. */
static void note_equal(const struct piece *piece) {
    struct gps_area *area;
    GPS_AREAS_LOCKED();
    struct gps_block *block = block_of(piece, &area);
    gps_area_fill(area, block, piece->to, piece->size);
    block->written = gps_clock_monotonic();
    if (block->state == GPS_BLOCK_SPECULATIVE && gps_block_is_full(block))
        gps_merge_share(area, block);
}

static bool compare(struct piece *piece) {
    struct gps_area *area;
    gps_area_lock();
    struct gps_block *block = block_of(piece, &area);
    const bool shared =
        block && (block->state == GPS_BLOCK_OFFERING || gps_block_is_merged(block) ||
                  block->state == GPS_BLOCK_SPECULATIVE);
    gps_area_unlock();
    const struct gps_hash *chunks = shared ? chunks_of(block, piece->to - piece->at) : NULL;
    if (!chunks || !is_equal(piece, chunks))
        return false;
    note_equal(piece);
    return true;
}

static bool is_there(struct piece *piece) {
    look_for_shared(piece);
    gps_swap_lock();
    const bool there = compare(piece);
    gps_swap_unlock();
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

static int copy(const struct run *run) {
    struct gps_gate_pass pass;
    int code = gps_unmerge_begin(run->to, run->size, true, false);
    if (code != GPS_OK)
        return code;
    gps_gate_enter(&pass);
    gps_streams_note(pass.slot, run->stream);
    code = gps_ops->upload(run->to, run->from, run->size, run->stream);
    gps_gate_leave(&pass);
    gps_unmerge_end(run->to, run->size);
    return code;
}

static int flush(struct run *run, uint64_t serial) {
    if (!run->size)
        return GPS_OK;
    const int code = copy(run);
    const uint64_t copied = atomic_fetch_add(&backlog, run->size) + run->size;
    run->size = 0;
    if (copied >= BACKLOG) {
        gps_merger_run(serial);
        atomic_store(&backlog, 0);
    } else {
        gps_merger_wake();
    }
    return code;
}

/* The work is inside a scope, but for the copy itself, which the program's signals may interrupt.
 */
static int load_piece(struct piece *piece, struct run *run) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, piece->context);
    const bool there = code == GPS_OK && is_there(piece);
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
static int wait_for(uint64_t stream) {
    const int code = gps_ops->stream_wait(stream);
    return gps_is_of_capture(code) ? GPS_OK : code;
}

/* A synchronous copy waits for what its stream has to do, whether it is made or not. */
int gps_load(const struct gps_write *write) {
    struct piece piece = {.serial = 0};
    struct run run = {.stream = write->stream};
    uint64_t size;
    int code = write->ordered ? GPS_OK : wait_for(write->stream);
    fit(write);
    for (uint64_t at = 0; code == GPS_OK && at < write->size; at += size) {
        size = cut(write, write->to + at, &piece);
        code = size ? load_piece(&piece, &run) : GPS_INVALID_VALUE;
    }
    return code == GPS_OK ? flush(&run, piece.serial) : code;
}
