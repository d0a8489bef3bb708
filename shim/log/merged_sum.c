/* merged_sum.c - see merged_sum.h. */
#include "merged_sum.h"

#include <stdatomic.h>

#include "event_log.h"
#include "util/forgotten.h"

static struct { _Atomic uint64_t merged, saved, unmerged; } state;
GPS_FORGOTTEN(state);

/* `most`: where it is kept, or NULL. */
static struct {
    _Atomic uint64_t now;
    _Atomic uint64_t *most;
} kept;
GPS_FORGOTTEN(kept);

void gps_merged_sum_keep(uint64_t *most) {
    kept.most = (_Atomic uint64_t *)most;
}

static void keep(uint64_t now) {
    uint64_t most = atomic_load(kept.most);
    while (most < now && !atomic_compare_exchange_weak(kept.most, &most, now))
        ;
}

void gps_merged_sum_merged(uint64_t bytes, uint64_t saved) {
    atomic_fetch_add(&state.saved, saved);
    atomic_fetch_add(&state.merged, bytes);
    const uint64_t now = atomic_fetch_add(&kept.now, bytes) + bytes;
    if (kept.most)
        keep(now);
}

void gps_merged_sum_unmerged(uint64_t bytes) {
    atomic_fetch_add(&state.unmerged, bytes);
    atomic_fetch_sub(&kept.now, bytes);
}

void gps_merged_sum_log(void) {
    const uint64_t merged = atomic_exchange(&state.merged, 0);
    const uint64_t saved = atomic_exchange(&state.saved, 0);
    const uint64_t unmerged = atomic_exchange(&state.unmerged, 0);
    if (merged != 0)
        gps_event_log_write(
            &(struct gps_event_line){.what = "merged", .size = merged, .saved = saved});
    if (unmerged != 0)
        gps_event_log_write(&(struct gps_event_line){.what = "unmerged", .size = unmerged});
}
