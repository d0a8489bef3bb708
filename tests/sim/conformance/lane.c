/* How descriptors go between the parent and its peers; see lane.h. */
#include "lane.h"

#include "../../common/system_headers.h"

static int ends[2];

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int))];
};

int lane_open(void) {
    return !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

void lane_close(void) {
    close(ends[LANE_PARENT]);
    close(ends[LANE_PEER]);
}

int lane_send(enum lane_end from, int descriptor) {
    char byte = 0;
    union control control = {.align = {.cmsg_len = CMSG_LEN(sizeof(int)),
                                       .cmsg_level = SOL_SOCKET,
                                       .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    memcpy(CMSG_DATA(&control.align), &descriptor, sizeof descriptor);
    return sendmsg(ends[from], &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

int lane_receive(enum lane_end at) {
    int descriptor = -1;
    char byte;
    union control control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    if (recvmsg(ends[at], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 &&
        CMSG_FIRSTHDR(&message))
        memcpy(&descriptor, CMSG_DATA(&control.align), sizeof descriptor);
    return descriptor;
}
