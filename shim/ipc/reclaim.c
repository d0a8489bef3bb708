#include "reclaim.h"

#include "deferred.h"
#include "driver/scope.h"
#include "keeper/keeper_client.h"
#include "merge/allocation.h"
#include "merge/merger.h"
#include "open_cache.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"

/* The keeper may hold blocks of any process. A keeper that does not answer is not asked. */
static bool reclaim(void) {
    GPS_SCOPE();
    const struct gps_store *store = gps_membership_look();
    return gps_process_config()->options.mode == GPS_MODE_SHARE && store &&
           gps_keeper_socket(store) &&
           gps_keeper_reclaim(store, gps_process_self(), GPS_SECOND / 4) == 0;
}

bool gps_reclaim_memory(void) {
    const bool ended = gps_open_cache_reclaim_memory();
    const bool freed = gps_merge_end_freed(GPS_MERGE_SURELY), cut = gps_merger_reclaim();
    const bool deferred = gps_deferred_reclaim_memory();
    /* The keeper is last: the steps before may have released blocks that it holds. */
    return reclaim() || deferred || ended || freed || cut;
}
