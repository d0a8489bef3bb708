/*
 * descriptor_passing.h - one message on a Unix socket, with at most one descriptor beside it.
 *
 * For SOCK_SEQPACKET: a message is whole or not at all. Nothing waits, nothing raises SIGPIPE, and
 * of what a peer sent no descriptor is ever left open that the caller was not given. No state.
 */
#ifndef GPS_DESCRIPTOR_PASSING_H
#define GPS_DESCRIPTOR_PASSING_H

#include <stddef.h>
#include <sys/types.h>

/* `descriptor` -1: none. 0 or -errno: -EAGAIN where it would wait, -ETOOMANYREFS: too many are on
 * their way to too many peers that do not read. */
int gps_passing_send(int socket, const void *bytes, size_t size, int descriptor);

/* The length of the message, 0 at the end of the connection, or -errno; -EMSGSIZE: it is longer
 * than `size`; -EPROTO: more than one descriptor came; -EMFILE: one came that we have no room for.
 * *descriptor: close-on-exec, the caller's, or -1. */
ssize_t gps_passing_receive(int socket, void *bytes, size_t size, int *descriptor);

#endif
