#include "mirror.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "mapping.h"
#include "process/gpu_bytes.h"
#include "process/membership.h"
#include "registry/range_tree.h"
#include "token_socket.h"
#include "util/descriptors.h"
#include "util/forgotten.h"
#include "util/lock.h"

enum { DEVICES = 64 };

/* By the exporter's addresses. */
struct block {
    struct gps_range range;
    uint64_t serial, handle;
    int home;         /* ordinal of the device that it lies on */
    uint64_t devices; /* devices that have access, a bit each */
    unsigned opens;   /* how many opens have it in their run */
};

struct open {
    struct open *next;
    struct gps_id token;
    uint64_t from, size; /* the exporter's addresses */
    uint64_t serial;     /* the open's own */
    int home;            /* as its blocks' */
    bool is_again;       /* it ends with another open of the same address */
    bool synced;
};

struct mirror {
    struct mirror *next;
    struct gps_owner exporter;
    uint64_t place, size; /* the exporter's addresses */
    uint64_t base;        /* ours */
    unsigned users;       /* opens under way */
    struct gps_range *blocks;
    struct open *opens;
};

static struct {
    GPS_LOCK(GPS_RANK_MIRRORS) lock;
    struct mirror *list;
    _Atomic bool any;
    uint64_t opened;                 /* the opens so far */
    _Atomic uint64_t bytes[DEVICES]; /* mapped of each device */
    struct gps_gpu_bytes told[DEVICES];
} state;
GPS_FORGOTTEN(state);

#define BLOCK(of) ((struct block *)(of))
_Static_assert(offsetof(struct block, range) == 0, "the first");

/* --- figures for other processes --- */

static uint64_t mirror_bytes_of(int device) {
    return atomic_load(&state.bytes[device]);
}

static void mirror_tell_bytes(int device) {
    struct gps_gpu_bytes *told = &state.told[device];
    if (gps_gpu_bytes_of_device(told, GPS_VIA_HELD, device, mirror_bytes_of))
        gps_gpu_bytes_publish(told);
}

/* --- blocks, with the lock --- */

static uint64_t here(const struct mirror *mirror, uint64_t theirs) {
    return mirror->base + (theirs - mirror->place);
}

static struct block *mirror_block_from(const struct mirror *mirror, uint64_t at) {
    return BLOCK(gps_range_from(mirror->blocks, at));
}

static bool mirror_block_is_same(const struct block *block, const struct gps_token_block *theirs) {
    return block->range.from == theirs->at && block->range.size == theirs->size &&
           block->serial == theirs->serial;
}

/* The block at the exporter's place; NULL: it is not here. *other: another is in its way. */
static struct block *mirror_block_find(const struct mirror *mirror,
                                       const struct gps_token_block *theirs, bool *other) {
    struct block *block = mirror_block_from(mirror, theirs->at);
    *other = block && block->range.from < theirs->at + theirs->size &&
             !mirror_block_is_same(block, theirs);
    return block && !*other && mirror_block_is_same(block, theirs) ? block : NULL;
}

static void mirror_end_block(struct mirror *mirror, struct block *block) {
    if (gps_ops->unmap(here(mirror, block->range.from), block->range.size) != GPS_OK)
        return; /* the block stays for the next open */
    gps_ops->block_release(block->handle);
    atomic_fetch_sub(&state.bytes[block->home], block->range.size);
    gps_range_remove(&mirror->blocks, &block->range);
    free(block);
}

static void mirror_drop_blocks(struct mirror *mirror, uint64_t from, uint64_t size) {
    for (uint64_t at = from; at - from < size;) {
        struct block *block = mirror_block_from(mirror, at);
        if (!block || block->range.from - from >= size)
            break;
        at = gps_range_end(&block->range);
        if (--block->opens == 0)
            mirror_end_block(mirror, block);
    }
}

/* The current device's bit in `devices`; devices of higher ordinals share the last bit. */
static uint64_t device_bit(void) {
    int device = DEVICES - 1;
    gps_ops->device(&device);
    return UINT64_C(1) << (device < DEVICES ? device : DEVICES - 1);
}

static int add_block(struct mirror *mirror, const struct gps_token_block *theirs, int home,
                     int descriptor) {
    struct block *block = calloc(1, sizeof(*block));
    if (!block)
        return GPS_OUT_OF_MEMORY;
    int code = gps_ops->block_import(descriptor, &block->handle);
    if (code == GPS_OK) {
        code = gps_mapping_map(here(mirror, theirs->at), theirs->size, block->handle, home, true);
        if (code != GPS_OK)
            gps_ops->block_release(block->handle);
    }
    if (code != GPS_OK) {
        free(block);
        return code;
    }
    block->range = (struct gps_range){.from = theirs->at, .size = theirs->size};
    block->serial = theirs->serial;
    block->home = home;
    block->devices = device_bit();
    gps_range_add(&mirror->blocks, &block->range);
    atomic_fetch_add(&state.bytes[home], block->range.size);
    return GPS_OK;
}

static int give_access(const struct mirror *mirror, struct block *block) {
    const uint64_t device = device_bit();
    if (block->devices & device)
        return GPS_OK;
    const int code =
        gps_mapping_allow(here(mirror, block->range.from), block->range.size, block->home, true);
    if (code == GPS_OK)
        block->devices |= device;
    return code;
}

/* --- mirrors --- */

/* The n-th mirror of a range, the oldest first; with the lock. */
static struct mirror *nth(const struct gps_owner *exporter, const struct gps_token_reply *reply,
                          unsigned n) {
    for (struct mirror *mirror = state.list; mirror; mirror = mirror->next)
        if (gps_owner_equal(&mirror->exporter, exporter) && mirror->place == reply->place &&
            mirror->size == reply->place_size && n-- == 0)
            return mirror;
    return NULL;
}

static struct mirror *mirror_begin(const struct gps_owner *exporter,
                                   const struct gps_token_reply *reply, int *code) {
    struct mirror *mirror = calloc(1, sizeof(*mirror)), **end = &state.list;
    *code = mirror ? gps_ops->reserve(reply->place_size, &mirror->base) : GPS_OUT_OF_MEMORY;
    if (*code != GPS_OK) {
        free(mirror);
        return NULL;
    }
    mirror->exporter = *exporter;
    mirror->place = reply->place;
    mirror->size = reply->place_size;
    while (*end)
        end = &(*end)->next;
    *end = mirror;
    atomic_store(&state.any, true);
    return mirror;
}

/* With the lock. */
static void end_if_unused(struct mirror *mirror) {
    struct mirror **link = &state.list;
    if (mirror->users || mirror->opens || mirror->blocks)
        return;
    gps_ops->unreserve(mirror->base, mirror->size);
    while (*link != mirror)
        link = &(*link)->next;
    *link = mirror->next;
    free(mirror);
    atomic_store(&state.any, state.list != NULL);
}

static struct mirror *at_address(uint64_t address) {
    struct mirror *mirror = state.list;
    while (mirror && address - mirror->base >= mirror->size)
        mirror = mirror->next;
    return mirror;
}

/* --- opening --- */

enum { TAKEN, MISSING = -1, IN_THE_WAY = -2 }; /* or a code of the driver's */

/* A run that is being opened, block by block from its beginning. */
struct filling {
    struct mirror *mirror;
    int home;
    struct gps_token_line line;
    struct gps_token_reply reply;
    int descriptors[GPS_TOKEN_BLOCKS];
    unsigned count; /* of descriptors */
    uint64_t wanted;
    uint64_t taken; /* bytes */
};

/* Counts one more open of a block, which is imported if there is a descriptor for it. */
static int take_block(struct filling *filling, unsigned n, unsigned *used) {
    const struct gps_token_block *theirs = &filling->reply.blocks[n];
    const bool has_descriptor = filling->wanted >> n & 1 && *used < filling->count;
    const int descriptor = has_descriptor ? filling->descriptors[(*used)++] : -1;
    bool other;
    struct block *block = mirror_block_find(filling->mirror, theirs, &other);
    if (other)
        return IN_THE_WAY;
    if (!block && !has_descriptor)
        return MISSING;
    int code = block ? give_access(filling->mirror, block)
                     : add_block(filling->mirror, theirs, filling->home, descriptor);
    if (code == GPS_OK)
        mirror_block_find(filling->mirror, theirs, &other)->opens++;
    return code;
}

/* The blocks of the reply that are missing; all of them at the second look, because a block that
 * was here may have ended since. */
static uint64_t filling_missing(const struct filling *filling) {
    uint64_t bits = 0;
    bool other;
    for (unsigned n = 0; n < filling->reply.count; n++)
        if (filling->wanted ||
            !mirror_block_find(filling->mirror, &filling->reply.blocks[n], &other))
            bits |= UINT64_C(1) << n;
    return bits;
}

/* Takes the blocks of one reply: all of them, or none. */
static int filling_take_reply(struct filling *filling) {
    const struct gps_token_reply *reply = &filling->reply;
    uint64_t taken = 0;
    unsigned used = 0;
    int code = TAKEN;
    GPS_LOCKED(&state.lock);
    for (unsigned n = 0; n < reply->count && code == TAKEN; n++) {
        code = take_block(filling, n, &used);
        if (code == TAKEN)
            taken += reply->blocks[n].size;
    }
    if (code == TAKEN) {
        filling->taken += taken;
        return TAKEN;
    }
    filling->wanted = code == MISSING ? filling_missing(filling) : 0;
    if (taken)
        mirror_drop_blocks(filling->mirror, reply->blocks[0].at, taken);
    return code;
}

/* 0, a code, or IN_THE_WAY; *status is the exporter's. */
static int take_window(struct filling *filling, int *status) {
    const uint64_t from = filling->reply.blocks[0].at;
    int code = filling_take_reply(filling);
    for (unsigned i = 0; code == MISSING && i < 2; i++) {
        *status = gps_token_line_ask(&filling->line, from, filling->wanted, &filling->reply,
                                     filling->descriptors, &filling->count);
        if (*status < 0)
            return TAKEN;
        code = filling_take_reply(filling);
        gps_passing_close(filling->descriptors, filling->count);
        filling->count = 0;
    }
    return code == MISSING ? GPS_INVALID_VALUE : code;
}

/* Opens the run to its end, from the reply at hand, which has its beginning. */
static int filling_fill_run(struct filling *filling, int *status) {
    const uint64_t run = filling->reply.run, size = filling->reply.run_size;
    int code = take_window(filling, status);
    while (code == TAKEN && *status == 0 && filling->taken < size) {
        filling->wanted = 0;
        *status = gps_token_line_ask(&filling->line, run + filling->taken, 0, &filling->reply,
                                     filling->descriptors, &filling->count);
        if (*status == 0)
            code = take_window(filling, status);
    }
    return code;
}

static struct mirror *mirror_enter(const struct gps_region_record *record,
                                   const struct gps_token_reply *reply, unsigned n, int *code) {
    GPS_LOCKED(&state.lock);
    struct mirror *mirror = nth(&record->owner, reply, n);
    if (!mirror)
        mirror = mirror_begin(&record->owner, reply, code);
    if (mirror)
        mirror->users++;
    return mirror;
}

/* Notes the open, or undoes the part that was opened. */
static void mirror_leave(struct filling *filling, const struct gps_token_reply *first,
                         struct open *opened) {
    struct mirror *mirror = filling->mirror;
    GPS_LOCKED(&state.lock);
    mirror->users--;
    if (opened) {
        opened->serial = ++state.opened;
        opened->next = mirror->opens;
        mirror->opens = opened;
    } else if (filling->taken) {
        mirror_drop_blocks(mirror, first->run, filling->taken);
    }
    end_if_unused(mirror);
}

/* Opens the run in the n-th mirror of its range. */
static int mirror_open_in(struct filling *filling, const struct gps_region_record *record,
                          unsigned n, int *status, uint64_t *pointer) {
    const struct gps_token_reply first = filling->reply;
    struct open *opened = calloc(1, sizeof(*opened));
    int code = opened ? GPS_OK : GPS_OUT_OF_MEMORY;
    filling->mirror = opened ? mirror_enter(record, &first, n, &code) : NULL;
    if (!filling->mirror) {
        free(opened);
        return code;
    }
    filling->taken = filling->wanted = 0;
    code = filling_fill_run(filling, status);
    *pointer = here(filling->mirror, first.run);
    *opened = (struct open){
        .token = record->id, .from = first.run, .size = first.run_size, .home = filling->home};
    const bool is_open = code == TAKEN && *status == 0;
    mirror_leave(filling, &first, is_open ? opened : NULL);
    if (!is_open)
        free(opened);
    filling->reply = first;
    return code;
}

static int open_run(struct filling *filling, const struct gps_region_record *record,
                    uint64_t *pointer) {
    int code = IN_THE_WAY, status;
    status = gps_token_line_ask(&filling->line, 0, 0, &filling->reply, filling->descriptors,
                                &filling->count);
    for (unsigned n = 0; code == IN_THE_WAY && status == 0; n++)
        code = mirror_open_in(filling, record, n, &status, pointer);
    return status < 0 ? status : code;
}

int gps_mirror_open(const struct gps_region_record *record, uint64_t *pointer) {
    struct filling filling;
    if (!gps_operations->has_blocks)
        return GPS_INVALID_VALUE;
    const int home = gps_mapping_ordinal(record->device);
    if (home < 0 || gps_peers_reached(record->device) == 0)
        return GPS_PEER_UNSUPPORTED;
    int code = gps_context_state();
    if (code != GPS_OK)
        return code;
    filling.count = 0;
    filling.home = home;
    gps_token_line_begin(&filling.line, gps_membership_store(), record);
    code = open_run(&filling, record, pointer);
    gps_token_line_end(&filling.line);
    mirror_tell_bytes(home);
    return code;
}

/* --- open ones, with the lock --- */

static struct open **find_open(struct mirror *mirror, uint64_t from, const struct gps_id *token,
                               bool is_again) {
    struct open **link = &mirror->opens;
    while (*link && ((*link)->from != from || (*link)->is_again != is_again ||
                     (token && !gps_id_equal(&(*link)->token, token))))
        link = &(*link)->next;
    return *link ? link : NULL;
}

void gps_mirror_opened_again(uint64_t pointer, const struct gps_id *token) {
    GPS_LOCKED(&state.lock);
    struct mirror *mirror = at_address(pointer);
    struct open **link =
        mirror ? find_open(mirror, pointer - mirror->base + mirror->place, token, false) : NULL;
    if (link)
        (*link)->is_again = true;
}

static void end_open(struct mirror *mirror, struct open **link) {
    struct open *over = *link;
    *link = over->next;
    mirror_drop_blocks(mirror, over->from, over->size);
    free(over);
}

/* Closes one open of an address. The last one ends the opens, too, that were counted with it. */
static bool close_at(struct mirror *mirror, uint64_t from, const struct gps_id *token, int *home) {
    struct open **link = find_open(mirror, from, token, false);
    if (!link)
        link = find_open(mirror, from, NULL, false);
    if (!link)
        return false;
    *home = (*link)->home;
    end_open(mirror, link);
    while (!find_open(mirror, from, NULL, false) && (link = find_open(mirror, from, NULL, true)))
        end_open(mirror, link);
    return true;
}

int gps_mirror_close(uint64_t pointer, const struct gps_id *token) {
    int home;
    bool closed = false;
    gps_lock_take(&state.lock);
    struct mirror *mirror = at_address(pointer);
    if (mirror) {
        closed = close_at(mirror, pointer - mirror->base + mirror->place, token, &home);
        end_if_unused(mirror);
    }
    gps_lock_give(&state.lock);
    if (closed)
        mirror_tell_bytes(home);
    return closed ? GPS_OK : GPS_INVALID_VALUE;
}

/* --- look-ups --- */

bool gps_mirror_any(void) {
    return atomic_load(&state.any);
}

static struct open *longest_at(struct mirror *mirror, uint64_t at) {
    struct open *found = NULL;
    for (struct open *open = mirror->opens; open; open = open->next)
        if (at - open->from < open->size && (!found || open->size > found->size))
            found = open;
    return found;
}

bool gps_mirror_at(uint64_t address, struct gps_mirrored *found) {
    if (!atomic_load_explicit(&state.any, memory_order_relaxed))
        return false;
    GPS_LOCKED(&state.lock);
    struct mirror *mirror = at_address(address);
    const struct open *open =
        mirror ? longest_at(mirror, address - mirror->base + mirror->place) : NULL;
    *found = open ? (struct gps_mirrored){.pointer = here(mirror, open->from),
                                          .size = open->size,
                                          .serial = open->serial,
                                          .synced = open->synced}
                  : (struct gps_mirrored){.size = 0};
    return mirror != NULL;
}

void gps_mirror_set_synced(uint64_t pointer, bool synced) {
    GPS_LOCKED(&state.lock);
    struct mirror *mirror = at_address(pointer);
    struct open *open = mirror ? longest_at(mirror, pointer - mirror->base + mirror->place) : NULL;
    if (open)
        open->synced = synced;
}

/* Where the blocks end that adjoin from an address on; in the exporter's addresses. */
static uint64_t end_of_blocks(const struct mirror *mirror, uint64_t at) {
    const struct block *block;
    while ((block = mirror_block_from(mirror, at)) && block->range.from <= at && block->opens)
        at = gps_range_end(&block->range);
    return at;
}

/* Of the opens that begin before an address, the one that reaches furthest. */
static const struct open *open_before(const struct mirror *mirror, uint64_t at) {
    const struct open *found = NULL;
    for (const struct open *open = mirror->opens; open; open = open->next)
        if (open->from <= at && (!found || open->from + open->size > found->from + found->size))
            found = open;
    return found;
}

bool gps_mirror_ends(uint64_t address, uint64_t size, uint64_t *end, struct gps_id *token) {
    if (!atomic_load_explicit(&state.any, memory_order_relaxed))
        return false;
    GPS_LOCKED(&state.lock);
    const struct mirror *mirror = at_address(address);
    const uint64_t at = mirror ? address - mirror->base + mirror->place : 0;
    const struct open *open = mirror ? open_before(mirror, at) : NULL;
    const uint64_t gap = open ? end_of_blocks(mirror, at) : 0;
    if (!open || gap - at >= size)
        return false;
    *end = here(mirror, gap);
    *token = open->token;
    return true;
}
