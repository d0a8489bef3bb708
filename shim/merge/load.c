/* load.c - see load.h. */
#include "load.h"

#include <string.h>
#include <unistd.h>

#include "allocation.h"
#include "block.h"
#include "gate/streams.h"
#include "merger.h"
#include "process/driver_ops.h"
#include "process/scope.h"
#include "shared_block.h"
#include "unmerge.h"

#define BACKLOG (UINT64_C(256) << 20)

/* What of the copy goes into one block. */
struct piece {
    uint64_t to, size, stream;
    const uint8_t *from;
    uint64_t serial, context;
    unsigned index;
    uint8_t state; /* of the block, as it was */
    bool whole;    /* it covers the block, which may be merged */
    struct gps_id id;
    struct gps_shared_key key;
};

static bool is_lazy(uint64_t address) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_area_lock();
    const struct gps_area *area = gps_area_at(address);
    const bool lazy = area && area->lazy;
    gps_area_unlock();
    gps_scope_end(&scope);
    return lazy;
}

/* What is smaller covers no block. */
bool gps_load_takes(const struct gps_write *write) {
    return write->kind != GPS_WRITE_OTHER && write->from && !write->list && write->rows <= 1 &&
           write->size >= GPS_MERGE_SMALL && gps_area_near(write->to, write->size) &&
           is_lazy(write->to) && gps_ops->kind((uintptr_t)write->from) == GPS_MEMORY_UNKNOWN &&
           !gps_ops->capturing(write->stream);
}

/* The part of the copy that begins at `to`; 0: it is no area's any more. */
static uint64_t cut(const struct gps_write *write, uint64_t to, struct piece *piece) {
    const uint64_t left = write->to + write->size - to;
    unsigned first, end;
    gps_area_lock();
    const struct gps_area *area = gps_area_at(to);
    if (area) {
        gps_area_blocks(area, to, 1, &first, &end);
        const struct gps_block *block = &area->blocks[first];
        const uint64_t in = to - area->pointer - block->at;
        const uint64_t size = left < block->size - in ? left : block->size - in;
        *piece = (struct piece){.to = to,
                                .size = size,
                                .stream = write->stream,
                                .from = (const uint8_t *)write->from + (to - write->to),
                                .serial = area->serial,
                                .context = area->context,
                                .index = first,
                                .state = block->state,
                                .whole = size == block->size && !block->fixed,
                                .id = block->id,
                                .key.size = block->size};
        memcpy(piece->key.uuid, area->uuid, GPS_UUID_BYTES);
    }
    gps_area_unlock();
    return area ? piece->size : 0;
}

/* --- a block that is there already --- */

static bool adopt(const struct piece *piece, const struct gps_id *id, unsigned slot,
                  uint64_t memory) {
    bool adopted = false;
    gps_area_lock();
    struct gps_area *area = gps_area_by_serial(piece->serial);
    struct gps_block *block = area ? &area->blocks[piece->index] : NULL;
    if (block && block->state == GPS_BLOCK_EMPTY &&
        gps_block_adopt(area, block, memory) == GPS_OK) {
        gps_merge_no_longer_empty();
        block->owned = false;
        block->id = *id;
        block->slot = slot;
        block->filled = ~UINT64_C(0);
        adopted = true;
    }
    gps_area_unlock();
    return adopted;
}

static bool map_shared(const struct piece *piece) {
    struct gps_id id;
    int descriptor;
    unsigned slot;
    uint64_t memory = 0;
    if (gps_shared_get(&piece->key, &id, &descriptor, &slot) < 0)
        return false;
    const bool mapped =
        gps_ops->block_import(descriptor, &memory) == GPS_OK && adopt(piece, &id, slot, memory);
    close(descriptor);
    if (mapped) {
        gps_shared_commit(&id, slot, false, piece->to);
        return true;
    }
    if (memory)
        gps_ops->block_release(memory);
    gps_shared_release(&id, slot, false);
    return false;
}

static bool is_there(struct piece *piece) {
    struct gps_digest digest;
    if (!piece->whole || (piece->state != GPS_BLOCK_EMPTY && piece->state != GPS_BLOCK_MERGED) ||
        !(piece->key.sample = gps_digest_sample(piece->from, piece->size)) ||
        !gps_shared_probable(&piece->key) || !gps_digest_of(piece->from, piece->size, &digest))
        return false;
    piece->key.hash = digest.hash;
    const struct gps_id id = gps_shared_id(&piece->key);
    if (piece->state == GPS_BLOCK_MERGED)
        return gps_id_equal(&id, &piece->id);
    return map_shared(piece);
}

/* --- the copy --- */

static int copy(const struct piece *piece) {
    struct gps_gate_pass pass;
    int code = gps_unmerge_begin(piece->to, piece->size, true, false);
    if (code != GPS_OK)
        return code;
    gps_gate_enter(&pass);
    gps_streams_note(pass.slot, piece->stream);
    code = gps_ops->upload(piece->to, piece->from, piece->size, piece->stream);
    gps_gate_leave(&pass);
    gps_unmerge_end(piece->to, piece->size);
    return code;
}

/* Inside a scope but for the copy itself, which the program's signals may interrupt. */
static int load_piece(struct piece *piece, uint64_t *backlog) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, piece->context);
    const bool there = code == GPS_OK && is_there(piece);
    gps_scope_end(&scope);
    if (there || code != GPS_OK)
        return code;
    code = copy(piece);
    *backlog += piece->size;
    if (*backlog >= BACKLOG && code == GPS_OK) {
        gps_scope_enter(&scope, 0);
        gps_merger_run(piece->serial);
        gps_scope_end(&scope);
        *backlog = 0;
    }
    return code;
}

static uint64_t next_piece(const struct gps_write *write, uint64_t to, struct piece *piece) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const uint64_t size = cut(write, to, piece);
    gps_scope_end(&scope);
    return size;
}

/* While a graph is captured the legacy stream has nothing to do. */
static int wait_for(uint64_t stream) {
    const int code = gps_ops->stream_wait(stream);
    return code >= GPS_CAPTURE_UNSUPPORTED && code <= GPS_CAPTURE_LAST ? GPS_OK : code;
}

/* A synchronous copy waits for what its stream has to do, whether it is made or not. */
int gps_load(const struct gps_write *write) {
    struct piece piece;
    uint64_t backlog = 0, size;
    int code = write->ordered ? GPS_OK : wait_for(write->stream);
    for (uint64_t at = 0; code == GPS_OK && at < write->size; at += size) {
        size = next_piece(write, write->to + at, &piece);
        code = size ? load_piece(&piece, &backlog) : GPS_INVALID_VALUE;
    }
    if (code == GPS_OK)
        gps_merger_wake();
    return code;
}
