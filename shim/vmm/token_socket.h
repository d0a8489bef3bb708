/*
 * token_socket.h - the socket on which a process answers for its tokens (gpushare/token.h).
 *
 * No allocation. Any thread. Descriptors are close-on-exec and do not block.
 */
#pragma once

#include <stdbool.h>

#include "directory/store.h"
#include "gpushare/token.h"

/* Makes and opens the socket of this process. A descriptor or -errno. */
int gps_token_socket_listen(const struct gps_store *store, const struct gps_owner *self);
void gps_token_socket_remove(const struct gps_store *store, const struct gps_owner *self);

/* Whether bytes are a request. */
bool gps_token_request_valid(const struct gps_token_request *request, long size);

/* --- asking the exporter of a token for the blocks of its run --- */

/* A line is one connection, of one thread. The time for all its requests together is bounded: a
 * stopped exporter costs that time, once. During the wait the program's signals are let in, and no
 * lock is held. Inside a gps_scope. */
struct gps_token_line {
    const struct gps_store *store;
    struct gps_owner owner;
    struct gps_id id;
    int fd;            /* -1: none */
    uint64_t deadline; /* CLOCK_MONOTONIC */
};

void gps_token_line_begin(struct gps_token_line *line, const struct gps_store *store,
                          const struct gps_region_record *record);
void gps_token_line_end(struct gps_token_line *line);

/* Asks for the blocks from an address on, and for descriptors of the wanted ones, *count of them,
 * which are the caller's. 0 or -errno. -ENOENT: the exporter does not have the run any more.
 * -ECONNREFUSED: the exporter has ended. -ETIMEDOUT: it does not answer. */
int gps_token_line_ask(struct gps_token_line *line, uint64_t from, uint64_t wanted,
                       struct gps_token_reply *reply, int descriptors[GPS_TOKEN_BLOCKS],
                       unsigned *count);
