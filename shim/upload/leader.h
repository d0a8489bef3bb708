/*
 * leader.h - the process that created a region of upload = once, and writes it.
 *
 * Its writes are counted after the driver took them. When every byte is covered and none is under
 * way, the thread of the last one waits for the device, reads the region back, publishes the hashes
 * of what it then holds and makes it READY: its write takes that much longer. A later write into it
 * makes it WRITING again, and READY with new hashes when it has ended. A follower
 * that has compared before sees the new bytes, for the memory is one.
 *
 * A write that is part of a graph happens at some other time, or never, and one whose bytes are not
 * known covers nothing that can be said: after such a write the region is never READY.
 */
#pragma once

#include "upload.h"
#include "write.h"

void gps_leader_begin(struct gps_upload *upload);
void gps_leader_end(struct gps_upload *upload, const struct gps_write *write, int code);

void gps_leader_reset(void); /* in a forked child, which does not have the memory it reads into */
