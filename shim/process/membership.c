#include "membership.h"

#include <stdatomic.h>
#include <string.h>

#include "directory/orphans.h"
#include "directory/processes.h"
#include "process.h"
#include "util/clock.h"
#include "util/lock.h"

enum { UNTRIED, JOINED, ENDED, FAILED };

static struct {
    GPS_LOCK(GPS_RANK_JOINING) joining;
    _Atomic int phase;
    int status;     /* of the last attempt */
    uint64_t again; /* when FAILED: not before this */
    struct gps_store store, audit;
    struct gps_lease lease;
    _Atomic int looked; /* UNTRIED, one thread LOOKS, FOUND */
    struct gps_store seen;
} state;
enum { LOOKS = 1, FOUND };

static int find_store(struct gps_store *store, bool create) {
    char root[GPS_STORE_PATH];
    gps_store_root(root, sizeof(root));
    return gps_store_init(store, root, gps_store_namespace(), create);
}

static int take_lease(void) {
    const int status = find_store(&state.store, true);
    state.audit = state.store;
    state.audit.records = GPS_AUDIT;
    return status < 0 ? status
                      : gps_lease_take(&state.store, gps_process_self(),
                                       gps_process_program()->arguments, &state.lease);
}

int gps_membership_join(void) {
    if (atomic_load(&state.phase) == JOINED)
        return 0;
    GPS_LOCKED(&state.joining);
    const int phase = atomic_load(&state.phase);
    if (phase == UNTRIED || (phase == FAILED && gps_clock_monotonic() >= state.again)) {
        state.status = take_lease();
        state.again = gps_clock_monotonic() + GPS_SECOND;
        atomic_store(&state.phase, state.status == 0 ? JOINED : FAILED);
    }
    return state.status;
}

const struct gps_store *gps_membership_store(void) {
    const int phase = atomic_load(&state.phase);
    return phase == JOINED || phase == ENDED ? &state.store : NULL;
}

const struct gps_store *gps_membership_audit(void) {
    return gps_membership_store() ? &state.audit : NULL;
}

const struct gps_store *gps_membership_look(void) {
    const struct gps_store *joined = gps_membership_store();
    int looked = UNTRIED;
    if (joined)
        return joined;
    if (atomic_compare_exchange_strong(&state.looked, &looked, LOOKS))
        atomic_store(&state.looked, looked = find_store(&state.seen, false) == 0 ? FOUND : UNTRIED);
    return looked == FOUND ? &state.seen : NULL;
}

struct gps_lease *gps_membership_lease(void) {
    return atomic_load(&state.phase) == JOINED ? &state.lease : NULL;
}

bool gps_membership_is_lost(void) {
    const struct gps_lease *lease = gps_membership_lease();
    return lease && !gps_lease_is_there(lease);
}

static bool is_other_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive && !gps_process_is_self(&proc->header.owner);
    return !*(bool *)found;
}

static bool is_last(void) {
    bool other = false;
    return gps_proc_each(&state.store, is_other_alive, &other) == 0 && !other;
}

void gps_membership_end(void (*unpublish)(bool last)) {
    struct gps_gc_counts counts;
    if (atomic_load(&state.phase) != JOINED)
        return;
    unpublish(is_last());
    gps_lease_withdraw(&state.lease);
    atomic_store(&state.phase, ENDED);
    if (is_last())
        gps_store_gc(&state.store, false, &counts);
}

void gps_membership_reset(void) {
    if (atomic_load(&state.phase) == JOINED)
        gps_lease_forget(&state.lease);
    memset((void *)&state, 0, sizeof(state));
}
