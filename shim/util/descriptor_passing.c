#include "descriptor_passing.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool gps_passing_is_ours(int socket) {
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

union control {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void attach(struct msghdr *message, union control *control, int descriptor) {
    memset(control, 0, sizeof(*control));
    message->msg_control = control;
    message->msg_controllen = sizeof(*control);
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(descriptor));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
}

int gps_passing_send(int socket, const void *bytes, size_t size, int descriptor) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control;
    if (descriptor >= 0)
        attach(&message, &control, descriptor);
    return TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 ? -errno
                                                                                          : 0;
}

/* Takes the first descriptor and closes all others: how many there were. */
static unsigned unpack(struct msghdr *message, int *first) {
    unsigned count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + at, sizeof(descriptor));
            if (count++ == 0)
                *first = descriptor;
            else
                close(descriptor);
        }
    }
    return count;
}

ssize_t gps_passing_receive(int socket, void *bytes, size_t size, int *descriptor) {
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int first = -1;
    *descriptor = -1;
    ssize_t n = TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (n < 0)
        return -errno;
    unsigned count = unpack(&message, &first);
    if ((message.msg_flags & MSG_TRUNC) != 0)
        n = -EMSGSIZE;
    else if ((message.msg_flags & MSG_CTRUNC) != 0)
        n = count == 0 ? -EMFILE : -EPROTO;
    else if (count > 1)
        n = -EPROTO;
    if (n > 0)
        *descriptor = first;
    else if (first >= 0)
        close(first);
    return n;
}
