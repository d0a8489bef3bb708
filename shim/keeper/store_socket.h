/*
 * store_socket.h - Unix sockets that have a name in the published directory.
 *
 * No allocation. Any thread. Descriptors are close-on-exec and do not block.
 */
#pragma once

#include <sys/socket.h>

#include "directory/store.h"

/* Makes a socket and connects it, or binds it, by `call`, to a name in the directory. A descriptor
 * or -errno. -EPERM: the listener belongs to another user. */
typedef int gps_socket_call(int fd, const struct sockaddr *address, socklen_t size);
int gps_store_socket(const struct gps_store *store, const char *name, gps_socket_call *call);
