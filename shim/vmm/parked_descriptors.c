/* parked_descriptors.c - see parked_descriptors.h. */
#include "parked_descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/record.h"

enum { PAIRS = 64 };

struct pair {
    int in, out; /* -1: none */
    ino_t in_inode, out_inode;
    unsigned count;
};

static struct {
    pthread_mutex_t lock;
    struct pair pairs[PAIRS];
    unsigned used;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- a pair of sockets --- */

static bool is_socket(int fd, ino_t inode) {
    struct stat now;
    return fstat(fd, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_ino == inode;
}

/* Programs close what is not theirs, and open something else under the number. */
static bool is_whole(const struct pair *pair) {
    return is_socket(pair->in, pair->in_inode) && is_socket(pair->out, pair->out_inode);
}

static void discard(struct pair *pair) {
    if (is_socket(pair->in, pair->in_inode))
        close(pair->in);
    if (is_socket(pair->out, pair->out_inode))
        close(pair->out);
    *pair = state.pairs[--state.used];
}

static ino_t inode_of(int fd) {
    struct stat now;
    return fstat(fd, &now) == 0 ? now.st_ino : 0;
}

static struct pair *make(void) {
    int ends[2];
    const int room = 1 << 20; /* as much of it as the system allows */
    if (state.used == PAIRS ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return NULL;
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    struct pair *pair = &state.pairs[state.used++];
    *pair = (struct pair){.in = gps_file_move_high(ends[0]), .out = gps_file_move_high(ends[1])};
    pair->in_inode = inode_of(pair->in);
    pair->out_inode = inode_of(pair->out);
    return pair;
}

/* --- one descriptor --- */

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static bool put_into(struct pair *pair, const struct gps_id *id, int descriptor) {
    union control control = {.bytes = {0}};
    struct iovec data = {.iov_base = (void *)(uintptr_t)id, .iov_len = sizeof(*id)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    const bool sent =
        sendmsg(pair->in, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*id);
    pair->count += sent;
    return sent;
}

/* -1: it came without its descriptor, there was no number left for it; then it is lost. */
static bool take_out(struct pair *pair, struct gps_id *id, int *descriptor) {
    union control control;
    struct iovec data = {.iov_base = id, .iov_len = sizeof(*id)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    if (recvmsg(pair->out, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*id))
        return false;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *descriptor = -1;
    if (header && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    pair->count--;
    return true;
}

/* Looks through the whole pair, which leaves the others in it in their order. */
static bool find_in(struct pair *pair, const struct gps_id *wanted, int *found) {
    struct gps_id id;
    int descriptor;
    *found = -1;
    for (unsigned left = pair->count; left && take_out(pair, &id, &descriptor); left--) {
        if (*found < 0 && gps_id_equal(&id, wanted)) {
            *found = descriptor;
        } else if (descriptor >= 0) {
            put_into(pair, &id, descriptor);
            close(descriptor);
        }
    }
    return *found >= 0;
}

static struct pair *find(const struct gps_id *id, int *descriptor) {
    for (unsigned i = state.used; i-- > 0;) {
        if (!is_whole(&state.pairs[i]))
            discard(&state.pairs[i]);
        else if (find_in(&state.pairs[i], id, descriptor))
            return &state.pairs[i];
    }
    return NULL;
}

/* --- the bag --- */

void gps_parked_put(const struct gps_id *id, int descriptor) {
    bool done = false;
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.used; !done && i-- > 0;)
        done = is_whole(&state.pairs[i]) && put_into(&state.pairs[i], id, descriptor);
    struct pair *fresh = done ? NULL : make();
    if (fresh)
        put_into(fresh, id, descriptor);
    pthread_mutex_unlock(&state.lock);
}

bool gps_parked_get(const struct gps_id *id, int *descriptor) {
    pthread_mutex_lock(&state.lock);
    struct pair *pair = find(id, descriptor);
    if (pair)
        put_into(pair, id, *descriptor);
    pthread_mutex_unlock(&state.lock);
    return pair != NULL;
}

void gps_parked_drop(const struct gps_id *id) {
    int descriptor;
    pthread_mutex_lock(&state.lock);
    struct pair *pair = find(id, &descriptor);
    if (pair) {
        close(descriptor);
        if (!pair->count && state.used > 1) /* the last one stays: opens and closes alternate */
            discard(pair);
    }
    pthread_mutex_unlock(&state.lock);
}

/* The parent's sockets are closed here: while they are open, so are the descriptors in them. */
void gps_parked_reset(void) {
    state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    while (state.used)
        discard(&state.pairs[state.used - 1]);
}
