/*
 * follower.h - an importer of a region of upload = once, which believes that it uploads.
 *
 * Its mapping is read-only. A copy from the host into it waits until the region is READY, and is
 * then left out if it would write the bytes that are there. Whole chunks are compared by their
 * hashes, the rest byte by byte. Anything else, and every other way to write into the mapping by
 * the host's order, makes it private at that moment: the process gets memory of its own at the same
 * address, with the bytes that were there, and the driver does as it was told. Bytes that differ
 * are never lost, and never shared.
 *
 * A follower reads the source of a copy when the driver would: a copy from pageable memory reads it
 * when it is called, one from pinned memory when the stream comes to it, so that is waited for.
 */
#pragma once

#include "upload.h"
#include "write.h"

/* True: call the driver. False: *code is the answer; GPS_OK when the bytes are there already. */
bool gps_follower_write(struct gps_upload *upload, const struct gps_write *write, int *code);
