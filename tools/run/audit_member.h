/*
 * audit_member.h - makes this process one of those that share, for as long as an audit lasts.
 *
 * The last process to leave the directory removes the records of those that have ended. With an
 * audit as a member, the processes of its command are not the last: so a process that opens a
 * handle too late still learns whose memory it was.
 */
#pragma once

#include <stdbool.h>

#include "directory/lease.h"

struct audit_member {
    struct gps_store store;
    struct gps_lease lease;
    bool joined;
};

/* Joins the directory that the environment names, which is made if need be. A failure is left to
 * the command's processes to report. A child does not inherit the membership. */
void audit_member_begin(struct audit_member *member);
/* The last process to leave removes the files of dead ones, as the library does. */
void audit_member_end(struct audit_member *member);
