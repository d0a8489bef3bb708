/*
 * token_socket.h - the socket on which a process answers those that open its tokens
 * (gpushare/token.h).
 *
 * No state, no allocation. Any thread. Descriptors are close-on-exec and do not block.
 */
#pragma once

#include <stdbool.h>

#include "directory/store.h"
#include "gpushare/token.h"

/* Makes and opens the socket of this process. A descriptor or -errno. */
int gps_token_socket_listen(const struct gps_store *store, const struct gps_owner *self);
void gps_token_socket_remove(const struct gps_store *store, const struct gps_owner *self);

/* Connects to another process's. A descriptor or -errno. -EAGAIN: it has as many callers waiting as
 * it can have. -ENOENT, -ECONNREFUSED: it does not listen, and never will. */
int gps_token_socket_dial(const struct gps_store *store, const struct gps_owner *owner);

/* Whether bytes are a request, or a reply to this one whose blocks lie where it says. */
bool gps_token_request_valid(const struct gps_token_request *request, long size);
bool gps_token_reply_valid(const struct gps_token_reply *reply, long size,
                           const struct gps_token_request *request);
