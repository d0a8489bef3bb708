/*
 * audit_member.c - makes this process one of those that share, for as long as an audit lasts.
 */
#include "audit_member.h"

#include <signal.h>

#include "directory/orphans.h"
#include "directory/view.h"

static bool join(struct audit_member *member) {
    struct gps_owner self;
    struct view_place place;
    view_place_get(&place);
    if (view_store(&place, true, &member->store) != 0)
        return false;
    gps_owner_self(&self);
    return gps_lease_take(&member->store, &self, &member->lease) == 0;
}

void audit_member_begin(struct audit_member *member) {
    /* a limit on the size of files would otherwise end this process */
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    member->joined = join(member);
    signal(SIGXFSZ, before);
}

void audit_member_end(struct audit_member *member) {
    if (!member->joined)
        return;
    member->joined = false;
    gps_lease_drop(&member->lease);
    struct gps_gc_counts counts;
    if (!view_store_used(&member->store))
        gps_store_gc(&member->store, false, &counts);
}
