/* own_bytes.c - see own_bytes.h. */
#include "own_bytes.h"

#include <string.h>

#include "apart.h"
#include "area.h"
#include "directory/exclusions.h"
#include "driver/scope.h"
#include "layout.h"
#include "pause.h"
#include "process/gpu_bytes.h"
#include "rdma.h"
#include "util/clock.h"
#include "util/forgotten.h"

/* --- why a block is private --- */

static enum gps_private why_never(const struct gps_area *area) {
    if (area->times >= GPS_EXCLUDED)
        return GPS_PRIVATE_EXCLUDED;
    return gps_rdma_forbids(area->rule) ? GPS_PRIVATE_RDMA : GPS_PRIVATE_NAMED;
}

/* As the merger asks (is_filled), but for blocks in doubt, whose turn comes last. */
static bool is_filled(const struct gps_area *area, const struct gps_block *block) {
    const uint64_t quiet = area->rule->quiet;
    return !~block->filled ||
           (quiet && (area->rule->content == GPS_CONTENT_ANY || gps_layout_is_filled(area, block)));
}

static bool is_quiet(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    const uint64_t quiet = area->rule->quiet;
    if (block->writers)
        return false;
    return !quiet ||
           (block->same_since && now - block->same_since >= quiet && now - block->written >= quiet);
}

static enum gps_private why(const struct gps_area *area, const struct gps_block *block,
                            uint64_t now) {
    if (area->freed)
        return GPS_PRIVATE_FREED;
    if (block->excluded)
        return why_never(area);
    if (gps_pause_is_on())
        return GPS_PRIVATE_PAUSED;
    if (gps_block_is_frozen(block))
        return GPS_PRIVATE_WAITING;
    if (!is_filled(area, block))
        return GPS_PRIVATE_UNFILLED;
    return is_quiet(area, block, now) ? GPS_PRIVATE_WAITING : GPS_PRIVATE_WRITTEN;
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
        count->bytes[why(area, block, now)] += block->size;
        count->bytes[ALL] += block->size;
    }
}

static void count_all(struct count counts[GPUS]) {
    GPS_AREAS_LOCKED();
    const uint64_t now = gps_clock_monotonic();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->device >= 0 && area->device < GPUS)
            count_area(area, now, &counts[area->device]);
}

/* --- for explain --- */

static uint64_t *kept;
GPS_FORGOTTEN(kept);

void gps_own_bytes_keep(uint64_t *bytes) {
    kept = bytes;
}

static void keep(const struct count counts[GPUS]) {
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
    if (gps_apart_bytes(&apart))
        kept[GPS_PRIVATE_APART] = apart;
}

void gps_own_bytes_end(void) {
    struct count counts[GPUS] = {0};
    if (!kept)
        return;
    count_all(counts);
    keep(counts);
}

/* --- for all --- */

static struct own {
    struct gps_gpu_bytes published;
    uint64_t bytes; /* the newest count: one thread writes and reads it */
    uint64_t told;  /* of them */
} own[GPUS][KINDS];
GPS_FORGOTTEN(own);
static uint64_t told; /* when */
GPS_FORGOTTEN(told);

static uint64_t bytes_of(int number) {
    return (&own[0][0])[number].bytes;
}

static void publish(struct own *mine, unsigned kind, const struct count *count) {
    if (count->used)
        mine->published.gpu = count->gpu;
    mine->published.via = kind == ALL ? GPS_VIA_OWN : GPS_VIA_PRIVATE;
    mine->published.reason = kind == ALL ? 0 : kind;
    mine->published.number = (int)(mine - &own[0][0]);
    mine->published.bytes = bytes_of;
    mine->bytes = count->bytes[kind];
    if (gps_gpu_bytes_publish(&mine->published) == 0)
        mine->told = mine->bytes;
}

void gps_own_bytes_turn(void) {
    struct count counts[GPUS] = {0};
    const uint64_t now = gps_clock_monotonic();
    if (now - told < GPS_SECOND)
        return;
    told = now;
    GPS_SCOPE();
    count_all(counts);
    for (unsigned gpu = 0; gpu < GPUS; gpu++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            if (counts[gpu].bytes[kind] != own[gpu][kind].told)
                publish(&own[gpu][kind], kind, &counts[gpu]);
    if (kept)
        keep(counts);
}
