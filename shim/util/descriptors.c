#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

bool gps_passing_is_ours(int socket) {
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

union control {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(GPS_PASSING_MOST * sizeof(int))];
};

static void passing_attach(struct msghdr *message, union control *control, const int *descriptors,
                           unsigned count) {
    const size_t bytes = count * sizeof(*descriptors);
    memset(control, 0, sizeof(*control));
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors, bytes);
}

int gps_passing_send_many(int socket, const void *bytes, size_t size, const int *descriptors,
                          unsigned count) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    if (count)
        passing_attach(&message, &control, descriptors, count);
    return TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 ? -errno
                                                                                          : 0;
}

int gps_passing_send(int socket, const void *bytes, size_t size, int descriptor) {
    return gps_passing_send_many(socket, bytes, size, &descriptor, descriptor >= 0);
}

bool gps_passing_is_crowded(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    const int status = gps_passing_send(ends[0], "", 1, ends[0]);
    close(ends[0]);
    close(ends[1]);
    return status == -ETOOMANYREFS;
}

/* Takes the first `max` descriptors and closes all others. Returns how many there were. */
static unsigned passing_unpack(struct msghdr *message, int *descriptors, unsigned max) {
    unsigned count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + at, sizeof(descriptor));
            if (count < max)
                descriptors[count] = descriptor;
            else
                close(descriptor);
            count++;
        }
    }
    return count;
}

ssize_t gps_passing_receive_many(int socket, void *bytes, size_t size, int *descriptors,
                                 unsigned max, unsigned *count) {
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(max * sizeof(int))};
    *count = 0;
    ssize_t n = TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (n < 0)
        return -errno;
    const unsigned all = passing_unpack(&message, descriptors, max);
    if ((message.msg_flags & MSG_TRUNC) != 0)
        n = -EMSGSIZE;
    else if ((message.msg_flags & MSG_CTRUNC) != 0)
        n = all < max ? -EMFILE : -EPROTO;
    else if (all > max)
        n = -EPROTO;
    const unsigned taken = all < max ? all : max;
    if (n > 0)
        *count = taken;
    else
        gps_passing_close(descriptors, taken);
    return n;
}

void gps_passing_close(const int *descriptors, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        close(descriptors[i]);
}

ssize_t gps_passing_receive(int socket, void *bytes, size_t size, int *descriptor) {
    unsigned count;
    int first = -1;
    const ssize_t n = gps_passing_receive_many(socket, bytes, size, &first, 1, &count);
    *descriptor = count ? first : -1;
    return n;
}

/* --- out of the program's way --- */

enum {
    TABLE_MIN = 64, /* entries: the kernel's NR_OPEN_DEFAULT, of 64-bit systems */
    FREE_ABOVE = 4, /* free numbers to find, since other threads take some meanwhile */
};

/* A lower bound of the size of the descriptor table, which doubles when it grows. FDSize in
 * /proc/self/status would be exact, but its first read takes 40 us. */
static int table_size(int fd) {
    struct rlimit limit;
    int size = TABLE_MIN;
    while (size <= fd)
        size *= 2;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t)size
               ? (int)limit.rlim_cur
               : size;
}

static int descriptor_is_free(int fd) {
    return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

bool gps_descriptor_is_of(int fd, dev_t device, ino_t inode) {
    struct stat now;
    return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == device && now.st_ino == inode;
}

int gps_descriptor_move_high(int fd) {
    const int size = table_size(fd);
    int low = size, count = 0;
    while (count < FREE_ABOVE && low > size / 4 * 3 && low > fd + 1)
        count += descriptor_is_free(--low);
    const int high = count == FREE_ABOVE ? fcntl(fd, F_DUPFD_CLOEXEC, low) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
