#include "layout.h"

#include <string.h>

#include "block.h"
#include "driver/driver_ops.h"
#include "util/clock.h"
#include "util/forgotten.h"

#define TIMEOUT (20 * GPS_SECOND) /* for the other blocks of a relayout to be frozen */
#define WAIT    (TIMEOUT / 2)     /* after it what is frozen is cut without the others */

enum { TRIES = 8 };

/* --- where blocks should begin --- */

static uint64_t page_of(uint64_t at) {
    return at / GPS_MERGE_SMALL;
}

static uint64_t page_bit(uint64_t at) {
    return UINT64_C(1) << page_of(at) % 64;
}

/* In whole blocks, also where the allocation is the driver's own. */
static uint64_t end_of_all(const struct gps_area *area) {
    return gps_area_extent(area->extent);
}

static bool is_edge(const struct gps_area *area, uint64_t at) {
    return at >= end_of_all(area) || area->edges[page_of(at) / 64] & page_bit(at);
}

static void set_edge(struct gps_area *area, uint64_t at) {
    if (at < end_of_all(area))
        area->edges[page_of(at) / 64] |= page_bit(at);
}

/* The first edge at a place or behind it. */
static uint64_t edge_from(const struct gps_area *area, uint64_t at) {
    const uint64_t words = page_of(end_of_all(area)) / 64 + 1;
    uint64_t word = page_of(at) / 64, bits;
    if (at >= end_of_all(area))
        return end_of_all(area);
    bits = area->edges[word] & -page_bit(at);
    while (!bits && ++word < words)
        bits = area->edges[word];
    return bits ? (word * 64 + (uint64_t)__builtin_ctzll(bits)) * GPS_MERGE_SMALL
                : end_of_all(area);
}

/* The last edge up to a place: the first of all is at 0. */
static uint64_t edge_to(const struct gps_area *area, uint64_t at) {
    uint64_t word = page_of(at) / 64;
    uint64_t bits = area->edges[word] & (page_bit(at) | (page_bit(at) - 1));
    while (!bits)
        bits = area->edges[--word];
    return (word * 64 + 63 - (uint64_t)__builtin_clzll(bits)) * GPS_MERGE_SMALL;
}

/* The part of an area that a copy touches, and what lies in it whole. Nothing follows the end of an
 * allocation, so a copy up to there fills its last 2 MiB. */
struct touched {
    uint64_t from, to;
    uint64_t inner, outer; /* from and to where they are whole */
};

static struct touched touched_by(const struct gps_area *area, uint64_t address, uint64_t size) {
    const uint64_t from = address - area->pointer;
    const uint64_t to = size < area->size - from ? from + size : end_of_all(area);
    return (struct touched){.from = from / GPS_MERGE_SMALL * GPS_MERGE_SMALL,
                            .to = gps_area_extent(to),
                            .inner = gps_area_extent(from),
                            .outer = to / GPS_MERGE_SMALL * GPS_MERGE_SMALL};
}

/* Notes the tensor's edges in place of those of earlier tensors there. */
static void note_tensor(struct gps_area *area, const struct touched *copy) {
    for (uint64_t at = copy->from + GPS_MERGE_SMALL; (at = edge_from(area, at)) < copy->to;
         at += GPS_MERGE_SMALL)
        area->edges[page_of(at) / 64] &= ~page_bit(at);
    set_edge(area, copy->from);
    set_edge(area, copy->inner);
    set_edge(area, copy->outer);
    set_edge(area, copy->to);
    area->tensors = true;
}

/* --- the wanted blocks --- */

struct span {
    uint64_t at, end;
};

/* The block for a place. Between two edges all but the last have GPS_MERGE_LARGE. */
static struct span wanted_at(const struct gps_area *area, uint64_t place) {
    const uint64_t end = edge_from(area, place + GPS_MERGE_SMALL);
    uint64_t at = edge_to(area, place), size;
    at += (place - at) / GPS_MERGE_LARGE * GPS_MERGE_LARGE;
    while (at + (size = gps_area_piece(end - at, GPS_MERGE_LARGE)) <= place)
        at += size;
    return (struct span){at, at + size};
}

static uint64_t block_end(const struct gps_block *block) {
    return block->at + block->size;
}

static bool block_is_right(const struct gps_area *area, const struct gps_block *block) {
    const struct span wanted = wanted_at(area, block->at);
    return wanted.at == block->at && wanted.end == block_end(block);
}

/* Whether a block should begin there. */
static bool edge_is_wanted(const struct gps_area *area, uint64_t at) {
    return is_edge(area, at) || wanted_at(area, at).at == at;
}

/* The blocks between two places, and how many; `blocks` may be NULL. Of one that reaches beyond
 * them a part is cut for itself. */
static unsigned lay_out(const struct gps_area *area, uint64_t at, uint64_t end,
                        struct gps_block *blocks) {
    unsigned count = 0;
    for (uint64_t to; at < end; at = to) {
        to = wanted_at(area, at).end;
        to = to < end ? to : end;
        count += gps_area_cut(at, to, GPS_MERGE_LARGE, blocks ? &blocks[count] : NULL);
    }
    return count;
}

/* Makes room in the array for so many blocks in place of others. */
static struct gps_block *make_place(struct gps_area *area, unsigned first, unsigned end,
                                    unsigned count) {
    struct gps_block *blocks = area->blocks;
    memmove(&blocks[first + count], &blocks[end], (area->count - end) * sizeof(*blocks));
    area->count += first + count - end;
    return &blocks[first];
}

/* --- not mapped yet --- */

#define AT_ONCE (2 * GPS_MERGE_LARGE) /* has memory twice for a moment */

/* The bytes by which the memory of blocks that are not mapped exceeds their sizes. */
static uint64_t excess(const struct gps_area *area) {
    uint64_t bytes = 0;
    for (unsigned i = 0; i < area->count; i++)
        bytes += area->blocks[i].made ? area->blocks[i].made_size - area->blocks[i].size : 0;
    return bytes;
}

/* The last new block takes what was made for the last old one, of which it is the end. So copies
 * one behind the other make each block once. */
static bool may_inherit(const struct gps_area *area, const struct gps_block *old,
                        const struct gps_block *block) {
    return block->at >= old->at && excess(area) + old->size - block->size <= GPS_MERGE_LARGE;
}

static bool layout_make_blocks(const struct gps_area *area, struct gps_block *blocks,
                               unsigned count) {
    unsigned i = 0;
    while (i < count && gps_block_make(area, &blocks[i]) == GPS_OK)
        i++;
    if (i == count)
        return true;
    while (i-- > 0)
        gps_block_unmake(&blocks[i]);
    return false;
}

/* Makes the memory of new blocks, then releases that of the old ones, which have the same range. So
 * the allocation never has less memory than its size. */
static bool remake(const struct gps_area *area, struct gps_block *old, unsigned olds,
                   struct gps_block *blocks, unsigned count) {
    struct gps_block *last = &old[olds - 1], *end = &blocks[count - 1];
    if (!old->made) /* overcommit */
        return true;
    const bool inherits = may_inherit(area, last, end);
    if (!layout_make_blocks(area, blocks, count - inherits))
        return false;
    if (inherits) {
        end->made = last->made;
        end->made_size = last->made_size;
        last->made = 0;
    }
    for (unsigned i = 0; i < olds; i++)
        gps_block_unmake(&old[i]);
    return true;
}

/* The same of blocks that are not mapped, for a copy. The range that it does not touch is one block
 * on each side, because it is most likely cut again. */
static unsigned lay_out_for(const struct gps_area *area, const struct touched *copy, uint64_t at,
                            uint64_t end, struct gps_block *blocks) {
    unsigned count = 0;
    for (uint64_t to; at < end; at = to, count++) {
        to = at < copy->from ? copy->from : at < copy->to ? wanted_at(area, at).end : end;
        to = to < end ? to : end;
        blocks[count] = (struct gps_block){.at = at, .size = to - at, .slot = GPS_NO_SLOT};
    }
    return count;
}

/* Cuts UNBACKED blocks anew. Without room for that they stay as they are. */
static bool cut_anew(struct gps_area *area, const struct touched *copy, unsigned first,
                     unsigned end) {
    struct gps_block blocks[AT_ONCE / GPS_MERGE_SMALL];
    const uint64_t from = area->blocks[first].at, to = block_end(&area->blocks[end - 1]);
    const unsigned count = lay_out_for(area, copy, from, to, blocks);
    for (unsigned i = 0; i < count; i++)
        blocks[i].excluded = area->blocks[first].excluded; /* as all that are UNBACKED */
    if (!remake(area, &area->blocks[first], end - first, blocks, count))
        return false;
    memcpy(make_place(area, first, end, count), blocks, count * sizeof(blocks[0]));
    return true;
}

/* The end of the blocks from `first` on that may be cut anew together, up to a place. */
static unsigned end_of_window(const struct gps_area *area, unsigned first, uint64_t to) {
    const uint64_t from = area->blocks[first].at;
    unsigned end = first;
    while (end < area->count && area->blocks[end].at < to &&
           area->blocks[end].state == GPS_BLOCK_UNBACKED &&
           block_end(&area->blocks[end]) - from <= AT_ONCE)
        end++;
    return end;
}

static bool is_settled(const struct gps_area *area, const struct gps_block *block) {
    return block->state != GPS_BLOCK_UNBACKED || block_is_right(area, block);
}

/* Cuts anew the unmapped blocks that a copy touches. Later copies cut the range behind it. */
static void layout_fit_blocks(struct gps_area *area, const struct touched *copy) {
    unsigned at, end;
    gps_area_blocks(area, area->pointer + copy->from, 1, &at, &end);
    while (at < area->count && area->blocks[at].at < copy->to) {
        if (is_settled(area, &area->blocks[at])) {
            at++;
            continue;
        }
        if (!cut_anew(area, copy, at, end_of_window(area, at, copy->to)))
            return;
        at += !is_settled(area, &area->blocks[at]);
    }
}

/* A small copy that begins in a block without memory gives it some, also for tensors to come. */
static void set_apart(struct gps_area *area, const struct touched *copy) {
    unsigned first, end;
    gps_area_blocks(area, area->pointer + copy->from, copy->to - copy->from, &first, &end);
    for (unsigned i = first; i < end; i++)
        if (area->blocks[i].state != GPS_BLOCK_UNBACKED)
            return;
    set_edge(area, copy->from);
    set_edge(area, copy->to);
}

void gps_layout_note(struct gps_area *area, uint64_t address, uint64_t size) {
    const struct touched copy = touched_by(area, address, size);
    if (size >= GPS_MERGE_TENSOR)
        note_tensor(area, &copy);
    else if (area->lazy && area->tensors && size)
        set_apart(area, &copy);
    if (area->lazy && area->tensors)
        layout_fit_blocks(area, &copy);
}

/* --- frozen --- */

enum { RELAYOUT_MOST = 32 /* blocks: a swap of more would take too long */ };

/* Adjacent blocks that are not cut as the tensors lie. */
static struct {
    uint64_t serial, pointer; /* of the area; pointer 0: at first */
    uint64_t from;            /* where in it the next one is looked for */
    uint64_t copied;          /* when the blocks to be had were */
    unsigned first, end;      /* the blocks that are there */
    unsigned count;
    struct gps_block wanted[RELAYOUT_MOST];
} relayout;
GPS_FORGOTTEN(relayout);

static bool is_frozen(const struct gps_block *block) {
    return block->state == GPS_BLOCK_FROZEN && !block->excluded;
}

/* A block without memory may become frozen, because copies that are still to come give it some. */
static bool may_be_frozen(const struct gps_block *block) {
    return is_frozen(block) || (!block->excluded && !gps_block_is_read_only(block));
}

static bool has_waited(const struct gps_block *block, uint64_t time) {
    return gps_clock_monotonic() - block->swapped >= time;
}

/* Whether all blocks that are cut anew with this one may be frozen. */
static bool may_be_cut(const struct gps_area *area, const struct gps_block *block) {
    const uint64_t from = wanted_at(area, block->at).at;
    const uint64_t to = wanted_at(area, block_end(block) - GPS_MERGE_SMALL).end;
    unsigned first, end;
    gps_area_blocks(area, area->pointer + from, to - from, &first, &end);
    while (first < end && may_be_frozen(&area->blocks[first]))
        first++;
    return first == end;
}

/* Whether there should be blocks that lie in it whole. */
static bool has_whole(const struct gps_area *area, const struct gps_block *block) {
    struct span one = wanted_at(area, block->at);
    if (one.at < block->at && one.end < block_end(block))
        one = wanted_at(area, one.end);
    return one.at >= block->at && one.end <= block_end(block);
}

bool gps_layout_holds(const struct gps_area *area, const struct gps_block *block) {
    return area->tensors && area->tries < TRIES && !block_is_right(area, block) &&
           !has_waited(block, TIMEOUT) && (may_be_cut(area, block) || has_whole(area, block));
}

/* Whether a block that should be there is not. */
static bool brings_any(const struct gps_area *area) {
    unsigned old = relayout.first;
    for (unsigned i = 0; i < relayout.count; i++) {
        const struct gps_block *one = &relayout.wanted[i];
        while (old < relayout.end && area->blocks[old].at < one->at)
            old++;
        const bool there = old < relayout.end && area->blocks[old].at == one->at &&
                           area->blocks[old].size == one->size;
        if (!there && block_is_right(area, one))
            return true;
    }
    return false;
}

/* Where a relayout that begins with a block ends: at the last place at which both agree; or, where
 * the next block is not worth waiting for, anywhere. */
static unsigned relayout_find_end(const struct gps_area *area, unsigned first) {
    const uint64_t from = area->blocks[first].at;
    unsigned good = first, end = first;
    for (; end < area->count && is_frozen(&area->blocks[end]); end++) {
        const uint64_t to = block_end(&area->blocks[end]);
        if (to - from > GPS_MERGE_WINDOW || end - first == RELAYOUT_MOST ||
            lay_out(area, from, to, NULL) > RELAYOUT_MOST)
            break;
        good = edge_is_wanted(area, to) ? end + 1 : good;
    }
    const bool waits = end < area->count && !is_frozen(&area->blocks[end]) &&
                       may_be_frozen(&area->blocks[end]) && !has_waited(&area->blocks[first], WAIT);
    return good == first && !waits ? end : good;
}

/* Whether a relayout may begin with a block. */
static bool relayout_may_begin(const struct gps_area *area, unsigned first) {
    const struct gps_block *block = &area->blocks[first];
    return is_frozen(block) && !block_is_right(area, block) &&
           (edge_is_wanted(area, block->at) || !may_be_frozen(block - 1) ||
            has_waited(block, WAIT));
}

/* Finds the first relayout from a block on. */
static bool relayout_find(const struct gps_area *area, unsigned first) {
    for (; first < area->count; first++) {
        if (!relayout_may_begin(area, first))
            continue;
        relayout.first = first;
        relayout.end = relayout_find_end(area, first);
        if (relayout.end == first)
            continue;
        const uint64_t from = area->blocks[first].at,
                       to = block_end(&area->blocks[relayout.end - 1]);
        relayout.count = lay_out(area, from, to, relayout.wanted);
        if (brings_any(area))
            return true;
    }
    return false;
}

/* Up to where the blocks to be had are as they should be. */
static uint64_t end_of_right(const struct gps_area *area) {
    unsigned count = relayout.count;
    while (count > 1 && !block_is_right(area, &relayout.wanted[count - 1]))
        count--;
    return block_end(&relayout.wanted[count - 1]);
}

static bool relayout_find_in(struct gps_area *area) {
    const uint64_t from = relayout.pointer == area->pointer ? relayout.from : 0;
    unsigned first, end;
    if (!area->tensors || area->freed || area->tries >= TRIES)
        return false;
    gps_area_blocks(area, area->pointer + from, 1, &first, &end);
    first += first < area->count && area->blocks[first].at < from;
    if (!relayout_find(area, first))
        return false;
    area->tries++;
    relayout.pointer = area->pointer;
    relayout.serial = area->serial;
    relayout.from = end_of_right(area);
    return true;
}

bool gps_layout_next(uint64_t only, bool again) {
    bool found = false;
    relayout.pointer = again ? relayout.pointer : 0;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_from(relayout.pointer); area && !found;
         area = gps_area_next(area))
        found = (!only || only == area->serial) && relayout_find_in(area);
    return found;
}

/* --- blocks with their bytes --- */

/* Other blocks of the area may have been cut anew meanwhile. */
static bool relayout_is_there(const struct gps_area *area) {
    return relayout.end <= area->count &&
           area->blocks[relayout.first].at == relayout.wanted[0].at &&
           block_end(&area->blocks[relayout.end - 1]) ==
               block_end(&relayout.wanted[relayout.count - 1]);
}

/* Whether all have been frozen since before a time. */
static bool are_frozen(const struct gps_area *area, uint64_t time) {
    for (unsigned i = relayout.first; i < relayout.end; i++)
        if (!is_frozen(&area->blocks[i]) || area->blocks[i].swapped >= time)
            return false;
    return true;
}

static struct gps_area *relayout_area(uint64_t time) {
    struct gps_area *area = gps_area_of(relayout.pointer, relayout.serial);
    return area && relayout_is_there(area) && are_frozen(area, time) ? area : NULL;
}

static void fill_part(const struct gps_area *area, struct gps_block *block, uint64_t at,
                      uint64_t end) {
    const uint64_t from = at > block->at ? at : block->at;
    const uint64_t to = end < block_end(block) ? end : block_end(block);
    gps_area_fill(area, block, area->pointer + from, to - from);
}

/* New blocks inherit the bits of the 64ths of old ones, of which one may lie in several. */
static void carry_filled(const struct gps_area *area) {
    struct gps_block *to = relayout.wanted, *const last = to + relayout.count;
    for (const struct gps_block *from = &area->blocks[relayout.first];
         from < &area->blocks[relayout.end]; from++)
        for (unsigned part = 0; part < 64; part++) {
            const uint64_t size = from->size / 64, at = from->at + part * size;
            to += at >= block_end(to);
            for (struct gps_block *one = to; one < last && one->at < at + size; one++)
                if (from->filled >> part & 1)
                    fill_part(area, one, at, at + size);
        }
}

/* Copies the blocks, in the area's context, only where others could get as much memory again. */
static bool relayout_copy_blocks(const struct gps_area *area) {
    const uint64_t size = block_end(&relayout.wanted[relayout.count - 1]) - relayout.wanted[0].at;
    bool copied = gps_block_fits(2 * size);
    for (unsigned i = 0; i < relayout.count && copied; i++)
        copied = gps_block_copy(area, &relayout.wanted[i], &relayout.wanted[i].memory) == GPS_OK;
    return copied;
}

/* The area may be gone, and its context with it. */
bool gps_layout_copy(void) {
    bool copied = false;
    GPS_AREAS_LOCKED();
    const struct gps_area *area = relayout_area(UINT64_MAX);
    if (area && gps_area_enter(area) == GPS_OK) {
        relayout.copied = gps_clock_monotonic();
        carry_filled(area);
        copied = relayout_copy_blocks(area);
        gps_ops->leave();
    }
    return copied;
}

void gps_layout_exchange(void) {
    struct gps_area *area = relayout_area(relayout.copied);
    if (!area || gps_area_enter(area) != GPS_OK)
        return;
    if (gps_block_exchange(area, &area->blocks[relayout.first], relayout.end - relayout.first,
                           relayout.wanted, relayout.count) == GPS_OK) {
        for (unsigned i = 0; i < relayout.count; i++)
            relayout.wanted[i].swapped = gps_clock_monotonic();
        memcpy(make_place(area, relayout.first, relayout.end, relayout.count), relayout.wanted,
               relayout.count * sizeof(relayout.wanted[0]));
        area->tries = 0;
        relayout.count = 0;
    }
    gps_ops->leave();
}

void gps_layout_end(void) {
    for (unsigned i = 0; i < relayout.count; i++)
        if (relayout.wanted[i].memory)
            gps_ops->block_release(relayout.wanted[i].memory);
    relayout.count = 0;
}
