/*
 * audit_member.c - this process as one of those that share.
 */
#include "audit_member.h"

#include <signal.h>

#include "directory/view.h"

static int enter(struct audit_member *member) {
    struct gps_owner self;
    struct view_place place;
    view_place_get(&place);
    int error = gps_store_init(&member->store, place.root, place.name_space, true);
    if (error != 0)
        return error;
    gps_owner_self(&self);
    return gps_lease_take(&member->store, &self, &member->lease);
}

void audit_member_begin(struct audit_member *member) {
    /* a limit on the size of files would end us, and for nothing that matters */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    member->held = enter(member) == 0;
    signal(SIGXFSZ, before);
}

static bool is_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive;
    return !proc->alive;
}

void audit_member_end(struct audit_member *member) {
    struct gps_gc_counts counts;
    bool other = false;
    if (!member->held)
        return;
    member->held = false;
    gps_lease_drop(&member->lease);
    if (gps_proc_each(&member->store, is_alive, &other) == 0 && !other)
        gps_store_gc(&member->store, false, &counts);
}
