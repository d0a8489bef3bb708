#include "own_bytes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "directory/exclusions.h"
#include "driver/scope.h"
#include "layout.h"
#include "not_merging.h"
#include "process/gpu_bytes.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"

/* --- why a block is private --- */

static enum gps_private why_never(const struct gps_area *area) {
    if (area->times >= GPS_EXCLUDED)
        return GPS_PRIVATE_EXCLUDED;
    return gps_rdma_forbids(area->rule) ? GPS_PRIVATE_RDMA : GPS_PRIVATE_NAMED;
}

/* As block_is_filled of merger.c, but for blocks in doubt, whose turn comes last. */
static bool own_block_is_filled(const struct gps_area *area, const struct gps_block *block) {
    return !~block->filled || (area->rule->quiet && area->rule->content == GPS_CONTENT_ANY);
}

static bool own_block_is_quiet(const struct gps_area *area, const struct gps_block *block,
                               uint64_t now) {
    const uint64_t quiet = area->rule->quiet;
    if (block->writers)
        return false;
    return !quiet ||
           (block->same_since && now - block->same_since >= quiet && now - block->written >= quiet);
}

static enum gps_private own_block_reason(const struct gps_area *area, const struct gps_block *block,
                                         uint64_t now) {
    if (area->freed)
        return GPS_PRIVATE_FREED;
    if (block->excluded)
        return why_never(area);
    if (gps_pause_is_on())
        return GPS_PRIVATE_PAUSED;
    if (gps_block_is_frozen(block))
        return GPS_PRIVATE_WAITING;
    if (!own_block_is_filled(area, block) && !block->changed)
        return GPS_PRIVATE_UNFILLED;
    return own_block_is_quiet(area, block, now) && !block->changed ? GPS_PRIVATE_WAITING
                                                                   : GPS_PRIVATE_WRITTEN;
}

/* --- counting --- */

enum { GPUS = 32 /* those of higher numbers are not told */, ALL = GPS_PRIVATE_COUNT, KINDS };

/* Of one GPU; the last figure is the sum. */
struct count {
    bool used;
    struct gps_id gpu;
    uint64_t bytes[KINDS];
};

static void count_area(const struct gps_area *area, uint64_t now, struct count *count) {
    memcpy(&count->gpu, area->uuid, GPS_UUID_BYTES);
    count->used = true;
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        if (block->state != GPS_BLOCK_PRIVATE && !gps_block_is_frozen(block) && !block->made)
            continue;
        count->bytes[own_block_reason(area, block, now)] += block->size;
        count->bytes[ALL] += block->size;
    }
}

static void own_bytes_count(struct count counts[GPUS]) {
    GPS_AREAS_LOCKED();
    const uint64_t now = gps_clock_monotonic();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (gps_area_merges(area) && area->device >= 0 && area->device < GPUS)
            count_area(area, now, &counts[area->device]);
}

/* --- blocks that this process merged alone, though others of its program merge there --- */

struct mine {
    struct gps_id id;
    uint64_t size;
    bool shared;
};

struct search {
    struct mine *list; /* by id */
    size_t count;
    bool company; /* another process of the program merges */
};

static int mine_by_id(const void *left, const void *right) {
    return memcmp(left, right, sizeof(struct gps_id));
}

/* Returns how many blocks are merged; lists the first `capacity` of them. */
static size_t mine_collect(struct mine *list, size_t capacity) {
    size_t count = 0;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        for (unsigned i = 0; i < area->count; i++) {
            const struct gps_block *block = &area->blocks[i];
            if (!gps_block_is_merged(block))
                continue;
            if (count < capacity)
                list[count] = (struct mine){.id = block->id, .size = block->size};
            count++;
        }
    return count;
}

static void note_slot(struct search *search, const struct gps_slot *slot) {
    struct mine *found =
        bsearch(&slot->region, search->list, search->count, sizeof(*search->list), mine_by_id);
    for (; found && found > search->list && gps_id_equal(&found[-1].id, &slot->region); found--)
        ;
    const struct mine *end = search->list + search->count;
    for (; found && found < end && gps_id_equal(&found->id, &slot->region); found++)
        found->shared = true;
}

static bool search_note_process(void *arg, const struct gps_proc *proc) {
    struct search *search = arg;
    const struct gps_owner *owner = &proc->header.owner;
    if (!proc->alive || gps_process_is_self(owner))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        if (slot->via == GPS_VIA_MERGE || slot->via == GPS_VIA_CREATOR)
            note_slot(search, slot);
        search->company |= (slot->via == GPS_VIA_MERGE || slot->via == GPS_VIA_OWN) &&
                           strcmp(owner->command, gps_process_self()->command) == 0;
    }
    return true;
}

/* A block that only our own blocks share counts: no other process has it. */
static uint64_t sum(const struct search *search) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < search->count; i++)
        bytes += search->list[i].shared ? 0 : search->list[i].size;
    return bytes;
}

/* Finds the bytes of merged blocks that save nothing: the bytes of other processes differ, or lie
 * at other distances from a multiple of 2 MiB. It reads the files of all processes, for `gpushare
 * explain`. False: no other process of this program merges memory of a GPU of ours, or there is no
 * memory to find out. Inside a gps_scope, without a lock. */
static bool find_apart(uint64_t *bytes) {
    const struct gps_store *store = gps_membership_store();
    const size_t capacity = mine_collect(NULL, 0);
    struct search search = {.list =
                                store && capacity ? calloc(capacity, sizeof(*search.list)) : NULL};
    if (!search.list)
        return false;
    const size_t count = mine_collect(search.list, capacity);
    search.count = count < capacity ? count : capacity;
    qsort(search.list, search.count, sizeof(*search.list), mine_by_id);
    const bool known = gps_proc_each(store, search_note_process, &search) == 0 && search.company;
    if (known)
        *bytes = sum(&search);
    free(search.list);
    return known;
}

/* --- for explain --- */

static uint64_t *kept;
GPS_FORGOTTEN(kept);

void gps_own_bytes_keep(uint64_t *bytes) {
    kept = bytes;
}

static void own_bytes_keep_sums(const struct count counts[GPUS]) {
    uint64_t sum[KINDS] = {0}, apart;
    bool used = false;
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        used |= counts[gpu].used;
        for (unsigned kind = 0; kind < KINDS; kind++)
            sum[kind] += counts[gpu].bytes[kind];
    }
    if (!used)
        return;
    memcpy(kept, sum, GPS_PRIVATE_APART * sizeof(sum[0]));
    if (find_apart(&apart))
        kept[GPS_PRIVATE_APART] = apart;
}

void gps_own_bytes_end(void) {
    struct count counts[GPUS] = {0};
    if (!kept)
        return;
    own_bytes_count(counts);
    own_bytes_keep_sums(counts);
}

/* --- for all --- */

#define PAUSE (GPS_SECOND / 50) /* what was merged since is counted twice so long */

static struct own {
    struct gps_gpu_bytes published;
    uint64_t bytes; /* the newest count: one thread writes and reads it */
    uint64_t told;  /* of them */
} own[GPUS][KINDS];
GPS_FORGOTTEN(own);
static uint64_t told, noted; /* when, to all and for explain */
GPS_FORGOTTEN(told);
GPS_FORGOTTEN(noted);

static uint64_t own_bytes_of(int number) {
    return (&own[0][0])[number].bytes;
}

static void own_bytes_publish(struct own *mine, unsigned kind, const struct count *count) {
    if (count->used)
        mine->published.gpu = count->gpu;
    mine->published.via = kind == ALL ? GPS_VIA_OWN : GPS_VIA_PRIVATE;
    mine->published.reason = kind == ALL ? 0 : kind;
    mine->published.number = (int)(mine - &own[0][0]);
    mine->published.bytes = own_bytes_of;
    mine->bytes = count->bytes[kind];
    if (gps_gpu_bytes_publish(&mine->published) == 0)
        mine->told = mine->bytes;
}

void gps_own_bytes_turn(void) {
    struct count counts[GPUS] = {0};
    const uint64_t now = gps_clock_monotonic();
    if (now - told < PAUSE)
        return;
    told = now;
    GPS_SCOPE();
    own_bytes_count(counts);
    for (unsigned gpu = 0; gpu < GPUS; gpu++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            if (counts[gpu].bytes[kind] != own[gpu][kind].told)
                own_bytes_publish(&own[gpu][kind], kind, &counts[gpu]);
    if (kept && now - noted >= GPS_SECOND) {
        noted = now;
        own_bytes_keep_sums(counts);
    }
}
