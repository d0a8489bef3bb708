/*
 * membership.h - this process in the published directory: where that is, and the lease it holds.
 *
 * A process joins when it first has something to publish, or to look for. A directory that cannot
 * be used is tried again at the next such need, a second later. Any thread; inside a gps_scope.
 */
#pragma once

#include "directory/lease.h"

/* 0, or the -errno that the last attempt gave. */
int gps_membership_join(void);

/* NULL until this process joins. Both stay valid after gps_membership_end: threads may use them. */
const struct gps_store *gps_membership_store(void);
/* The same, with the records that audits write. */
const struct gps_store *gps_membership_audit(void);
/* The same for a process that only looks, and has not joined. NULL: there is no directory. */
const struct gps_store *gps_membership_look(void);
/* This process has joined, and its file is not in the directory any more: the directory was
 * removed. Processes that start later have another one, or make it. */
bool gps_membership_is_lost(void);
struct gps_lease *gps_membership_lease(void);

/* At the end of the process: withdraws the lease and, as the last member, removes what dead
 * processes left. `unpublish` runs before that; `last` says that no other member lives. */
void gps_membership_end(void (*unpublish)(bool last));

void gps_membership_reset(void); /* in a forked child */
