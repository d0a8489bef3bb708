/*
 * One message of the protocol and the descriptors that travel with it: how both sides send and
 * receive them. Descriptors arrive close-on-exec and are the receiver's.
 */
#pragma once

#include "protocol.h"

enum { SIM_MAX_DESCRIPTORS = SIM_MAX_DEVICES + 1 };

struct parcel {
    int fds[SIM_MAX_DESCRIPTORS];
    uint32_t count;
};

/* Room for a header and a parcel, aligned as a header. */
union sim_control {
    struct cmsghdr align;
    char room[CMSG_SPACE(SIM_MAX_DESCRIPTORS * sizeof(int))];
};

/* Whether all of it was sent. */
static inline bool sim_send(int socket, const void *data, size_t size, const struct parcel *parcel,
                            int flags) {
    union sim_control control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;
    if (parcel->count) {
        size_t length = parcel->count * sizeof *parcel->fds;
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(length);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(header), parcel->fds, length);
    }
    while ((sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent == (ssize_t)size;
}

/* The message's whole length, also where that is more than `size`; 0 at the end, -1 with errno. */
static inline ssize_t sim_receive(int socket, void *data, size_t size, struct parcel *parcel,
                                  int flags) {
    union sim_control control;
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t got;
    parcel->count = 0;
    while ((got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC | MSG_TRUNC)) < 0 &&
           errno == EINTR)
        ;
    struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        parcel->count = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof *parcel->fds);
        memcpy(parcel->fds, CMSG_DATA(header), parcel->count * sizeof *parcel->fds);
    }
    return got;
}

static inline void sim_discard(struct parcel *parcel) {
    while (parcel->count)
        close(parcel->fds[--parcel->count]);
}
