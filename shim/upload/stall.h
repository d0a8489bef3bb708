/*
 * stall.h - regions of upload = once that are never wholly written.
 *
 * An allocator's segment of 16 MiB whose tensors take 14.7 never becomes READY. When its creator
 * has not written to it for a while and another process holds it, it is given up: the keeper drops
 * it, that is reported once, and the memory stays the creator's alone. A process that waits for it
 * sees that it is gone and goes on with memory of its own.
 *
 * A while is a second, or, for a program that loads slowly, four times the longest pause that it
 * has made between two writes to the same region, but not longer than its rule waits. A region that
 * nobody else holds is left: it may still be completed. Nor is one given up that was never written
 * by copies or fills.
 */
#pragma once

#include "upload.h"

/* Of an upload that the caller has claimed: a write to it begins, has ended. */
void gps_stall_begin(const struct gps_upload *upload);
void gps_stall_end(struct gps_upload *upload);

/* A background thread looks for them from now on; it calls no driver. Inside a gps_scope. */
void gps_stall_start(void);

void gps_stall_reset(void); /* in a forked child */
