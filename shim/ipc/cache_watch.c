/* cache_watch.c - see cache_watch.h. */
#include "cache_watch.h"

#include <string.h>
#include <sys/inotify.h>

#include "directory/lease.h"
#include "directory/region.h"
#include "process/membership.h"
#include "util/lock.h"

enum {
    RECORD_EVENTS = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF,
    OWNER_EVENTS =
        IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF, /* it has closed its file: a death */
};

static struct {
    GPS_LOCK(GPS_RANK_CACHE_WATCH) lock;
    struct gps_watch watch;
} state = {.watch.fd = -1};

int gps_cache_watch_add(const struct gps_import *import) {
    const struct gps_store *store = gps_membership_store();
    char record[GPS_FILE_PATH], owner[GPS_FILE_PATH];
    gps_region_path(store, &import->region, "", record);
    gps_lease_path(store, &import->exporter.owner, owner);
    gps_lock_take(&state.lock);
    if (state.watch.fd < 0)
        gps_watch_open(&state.watch, store, 0);
    const int owner_file = gps_watch_file(&state.watch, owner, OWNER_EVENTS);
    const int record_file =
        owner_file < 0 ? -1 : gps_watch_file(&state.watch, record, RECORD_EVENTS);
    if (record_file >= 0)
        gps_registry_watch(import->pointer, record_file, owner_file);
    gps_lock_give(&state.lock);
    return record_file;
}

void gps_cache_watch_remove(const struct gps_import *import) {
    if (!import->record_file)
        return;
    gps_lock_take(&state.lock);
    gps_watch_unfile(&state.watch, import->record_file);
    gps_lock_give(&state.lock);
}

bool gps_cache_watch_uncache(const struct gps_import *import, uint32_t trace, uint64_t *pointer) {
    gps_lock_take(&state.lock);
    const bool open = gps_watch_quiet(&state.watch) &&
                      gps_registry_uncache(&import->region, import->context, trace, pointer);
    gps_lock_give(&state.lock);
    return open;
}

static void wake(void) {
    gps_watch_wake(&state.watch, gps_membership_store()->path);
}

void gps_cache_watch_read(bool by_sleeper) {
    int files[GPS_WATCH_CHANGES];
    unsigned count;
    bool stale = false;
    gps_lock_take(&state.lock);
    do {
        count = gps_watch_changed(&state.watch, files);
        for (unsigned i = 0; i < count; i++)
            stale |= gps_registry_outdate(files[i]);
    } while (count == GPS_WATCH_CHANGES);
    if (stale && !by_sleeper)
        wake();
    gps_lock_give(&state.lock);
}

void gps_cache_watch_expire(uint64_t context) {
    gps_lock_take(&state.lock);
    if (gps_registry_expire(context))
        wake();
    gps_lock_give(&state.lock);
}

bool gps_cache_watch_copy(struct gps_watch *watch) {
    gps_lock_take(&state.lock);
    *watch = state.watch;
    gps_lock_give(&state.lock);
    return watch->fd >= 0;
}

void gps_cache_watch_reset(void) {
    gps_watch_close(&state.watch);
    memset((void *)&state, 0, sizeof(state));
    state.watch.fd = -1;
}
