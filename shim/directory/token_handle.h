/*
 * token_handle.h - the 64 bytes of a token (gpushare/token.h), and its maker.
 *
 * Any thread, without memory.
 */
#pragma once

#include "store.h"

/* Whether handle bytes are a token, of this version or another. */
bool gps_token_is(const uint8_t handle[GPS_HANDLE_BYTES]);
/* Makes a token of a process. Each of its tokens has another `serial`. */
void gps_token_make(uint8_t handle[GPS_HANDLE_BYTES], const struct gps_store *store,
                    const struct gps_owner *maker, uint32_t serial);
/* The process that made a token; its command is not known. False: the handle is no token, or one
 * that was damaged on its way, or another version's. */
bool gps_token_maker(const uint8_t handle[GPS_HANDLE_BYTES], struct gps_owner *maker);
/* Whether the token was made in this directory, whatever its path was there. */
bool gps_token_is_of(const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_store *store);
