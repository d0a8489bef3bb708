/*
 * audit_member.c - this process as one of those that share.
 */
#include "audit_member.h"

#include <signal.h>

#include "directory/orphans.h"
#include "directory/view.h"

static int enter(struct presence *presence) {
    struct gps_owner self;
    struct view_place place;
    view_place_get(&place);
    int error = gps_store_init(&presence->store, place.root, place.name_space, true);
    if (error != 0)
        return error;
    gps_owner_self(&self);
    return gps_lease_take(&presence->store, &self, &presence->lease);
}

void presence_begin(struct presence *presence) {
    /* a limit on the size of files would end us, and for nothing that matters */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    presence->held = enter(presence) == 0;
    signal(SIGXFSZ, before);
}

static bool is_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive;
    return !proc->alive;
}

void presence_end(struct presence *presence) {
    struct gps_gc_counts counts;
    bool other = false;
    if (!presence->held)
        return;
    presence->held = false;
    gps_lease_drop(&presence->lease);
    if (gps_proc_each(&presence->store, is_alive, &other) == 0 && !other)
        gps_store_gc(&presence->store, false, &counts);
}
