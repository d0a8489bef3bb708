/*
 * audit_member.h - this process as one of those that share, so that the directory is not left
 * empty.
 *
 * The last process out removes what tells of those that have ended. While an audit is in the
 * directory, its command's processes are not the last: who opens a handle too late still learns
 * whose it was.
 */
#ifndef AUDIT_MEMBER_H
#define AUDIT_MEMBER_H

#include <stdbool.h>

#include "directory/lease.h"

struct audit_member {
    struct gps_store store;
    struct gps_lease lease;
    bool held;
};

/* In the directory that the environment names, which is made if need be. Where it cannot be had the
 * processes themselves say so. A child does not inherit it. */
void audit_member_begin(struct audit_member *member);
/* Who leaves last removes what the dead left, as the library does. */
void audit_member_end(struct audit_member *member);

#endif
