/*
 * descriptors.h - descriptors: passed to other processes, and kept out of the program's way.
 *
 * They are passed with a message on a Unix socket. That is a SOCK_SEQPACKET, so a message arrives
 * whole or not at all. No call waits or raises SIGPIPE. A received descriptor that the caller does
 * not get is closed. No state, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether the process at the other end of a Unix socket runs as this user. */
bool gps_passing_is_ours(int socket);

/* `descriptor` is -1 for none. 0 or -errno. -EAGAIN: the call would wait. -ETOOMANYREFS: too many
 * descriptors are on their way to peers that do not read them. */
int gps_passing_send(int socket, const void *bytes, size_t size, int descriptor);
/* Whether a send of this process's would fail for that reason. False also where it is not known. */
bool gps_passing_is_crowded(void);

/* Returns the length of the message, 0 at the end of the connection, or -errno. -EMSGSIZE: it is
 * longer than `size`. -EPROTO: it carries several descriptors. -EMFILE: this process has no room
 * for its descriptor. *descriptor is close-on-exec and belongs to the caller, or is -1. */
ssize_t gps_passing_receive(int socket, void *bytes, size_t size, int *descriptor);

/* The same with several descriptors, at most GPS_PASSING_MOST. -EMFILE: this process has no room
 * for all of them, and gets none. */
enum { GPS_PASSING_MOST = 64 };
int gps_passing_send_many(int socket, const void *bytes, size_t size, const int *descriptors,
                          unsigned count);
ssize_t gps_passing_receive_many(int socket, void *bytes, size_t size, int *descriptors,
                                 unsigned max, unsigned *count);
void gps_passing_close(const int *descriptors, unsigned count);

/* --- descriptors that stay open in a program --- */

/* Whether it is still open on this file: programs close others' descriptors, and numbers recur. */
bool gps_descriptor_is_of(int fd, dev_t device, ino_t inode);

/* Programs expect low numbers for the files that they open. A number beyond the process's
 * descriptor table makes the kernel grow it, which takes 5 to 20 ms with several threads (recorded
 * on H200 machines), so a descriptor moves only to the upper end of the table's present size. Any
 * thread. Returns the new number, close-on-exec, or fd itself where there is no room above. */
int gps_descriptor_move_high(int fd);
