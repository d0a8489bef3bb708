/*
 * secret.h - the key by which the processes of a directory hash blocks: <root>/<namespace>/secret.
 *
 * The hash of a block decides whether a copy is left out, and the hash function's own key is
 * public: bytes can be made for it that collide. So each directory has a random key. The first
 * process that needs one writes the file, which then never changes. A process that finds it gone
 * makes another one, and shares blocks only with processes that start later. A damaged file stays
 * until gc removes it: other processes may have read it before. Errors, threads and memory are as
 * in store.h.
 */
#pragma once

#include "store.h"

/* Reads the key, or makes it. -EBADMSG: the file is damaged or not gpushare's, and *why says how.
 * -EPROTO: another version of gpushare made it. */
int gps_secret_get(const struct gps_store *store, const struct gps_owner *self,
                   uint8_t bytes[GPS_SECRET_BYTES], const char **why);

/* Whether the file is there and is no key. */
bool gps_secret_damaged(const struct gps_store *store);
