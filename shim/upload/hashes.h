/*
 * hashes.h - regions/<id>.hashes: what an uploaded region holds, chunk by chunk.
 *
 * Written whole by the region's creator, before the region becomes READY, and replaced by it when
 * it has written the region again; read by a process that is about to upload the same. It is input
 * like all in the directory: checked, and then only compared. Goes with its record. Promises as in
 * store.h.
 */
#pragma once

#include "directory/store.h"

/* How many hashes `written` bytes have. */
uint64_t gps_hashes_count(uint64_t written);

/* Fills in all but id and written. */
void gps_hashes_seal(struct gps_region_hashes *header, const uint64_t *hashes);

/* NULL when the header is valid, and that of a file of `size` bytes; else what is wrong. */
const char *gps_hashes_check(const struct gps_region_hashes *header, uint64_t size);
/* The same for the hashes behind it. */
const char *gps_hashes_check_sum(const struct gps_region_hashes *header, const uint64_t *hashes);

/* `self` is the creator, whose lease must be held. -ENOSPC as gps_region_publish. */
int gps_region_set_hashes(const struct gps_store *store, const struct gps_id *id,
                          const struct gps_owner *self, uint64_t written, const uint64_t *hashes);

/* The hashes of so many bytes of the region. -ENOENT; -EBADMSG: they do not pass, or are of another
 * number of bytes. */
int gps_region_read_hashes(const struct gps_store *store, const struct gps_id *id, uint64_t written,
                           uint64_t *hashes);

/* The creator is about to write other bytes: a process that compares must find none, also where the
 * state cannot be changed because the keeper does not answer. */
void gps_region_drop_hashes(const struct gps_store *store, const struct gps_id *id);
bool gps_region_has_hashes(const struct gps_store *store, const struct gps_id *id);
