/*
 * connections.h - connections to the keeper: a request, a reply, the end.
 */
#pragma once

#include "keeper_state.h"

void connections_accept(struct keeper *keeper);
/* After connection `at` has become readable or was closed: replies, and ends it. */
void connections_serve(struct keeper *keeper, size_t at);
/* Ends the connections on which no request came in time. */
void connections_expire(struct keeper *keeper);
/* The time at which connections_expire has something to do. */
uint64_t connections_expiry(const struct keeper *keeper);
