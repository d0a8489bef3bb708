/* entry.c - see entry.h. */
#include "entry.h"

#include "driver/driver_ops.h"
#include "ipc/open_cache.h"
#include "lifecycle/lifecycle.h"
#include "merge/allocation.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "writes/write.h"

bool gps_entry_slowly(gps_attach_fn *attach) {
    gps_lifecycle_stay();
    return gps_lifecycle_begin(attach);
}

void gps_entry_refused(int code) {
    gps_lifecycle_stay();
    if (code == GPS_NOT_INITIALIZED && !gps_call.runtime)
        gps_lifecycle_not_initialized();
}

void gps_entry_not_initialized(bool (*slowly)(void)) {
    gps_call.inside++;
    if (gps_entry_begin(slowly))
        gps_lifecycle_not_initialized();
    gps_call.inside--;
}

void gps_entry_exit(void) {
    gps_lifecycle_end();
}

bool gps_entry_hooks(enum gps_hooked calls, bool (*slowly)(void)) {
    if (calls == GPS_HOOKED_ALWAYS)
        return true;
    if (!gps_entry_begin(slowly))
        return false;
    return calls == GPS_HOOKED_WRITES  ? gps_write_listeners != 0
           : calls == GPS_HOOKED_READS ? gps_merge_active || gps_open_cache_used
           : calls == GPS_HOOKED_TOLD  ? gps_rules_active
                                       : gps_merge_active;
}
