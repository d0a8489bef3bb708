/* Descriptors that hold blocks; see descriptor.h. */
#include "descriptor.h"

#include "../../common/system_headers.h"
#include <cuda.h>

#include <sys/epoll.h>

enum { CHAINS = 1024, AT_ONCE = 64 };

struct descriptor {
    uint64_t block;
    struct stat pipe; /* its device and inode */
    int end;          /* ours, the reading one */
    struct descriptor *next;
};

static struct {
    struct descriptor *chains[CHAINS];
    struct party party; /* holds what descriptors hold */
    uint64_t count;
    int epoll;
} all = {.epoll = -1};

int descriptor_start(void) {
    all.epoll = epoll_create1(EPOLL_CLOEXEC);
    return all.epoll < 0 ? -errno : 0;
}

int descriptor_watch(void) {
    return all.epoll;
}

uint64_t descriptor_count(void) {
    return all.count;
}

static struct descriptor **chain_of(const struct stat *pipe) {
    return &all.chains[pipe->st_ino % CHAINS];
}

static struct descriptor *find(int fd) {
    struct stat pipe;
    if (fstat(fd, &pipe))
        return NULL;
    struct descriptor *found = *chain_of(&pipe);
    while (found && (found->pipe.st_ino != pipe.st_ino || found->pipe.st_dev != pipe.st_dev))
        found = found->next;
    return found;
}

/* Its number first, then its hold: epoll has forgotten it when it is closed. */
static void remove_descriptor(struct descriptor *descriptor) {
    struct descriptor **link = chain_of(&descriptor->pipe);
    while (*link != descriptor)
        link = &(*link)->next;
    *link = descriptor->next;
    all.count--;
    close(descriptor->end);
    block_close(&all.party, descriptor->block, true);
    free(descriptor);
}

void descriptor_reap(void) {
    struct epoll_event events[AT_ONCE];
    int count;
    while ((count = epoll_wait(all.epoll, events, AT_ONCE, 0)) > 0)
        for (int i = 0; i < count; i++)
            remove_descriptor(events[i].data.ptr);
}

static bool watch(struct descriptor *descriptor) {
    /* A hang-up is always told of. */
    struct epoll_event event = {.data = {.ptr = descriptor}};
    return !fstat(descriptor->end, &descriptor->pipe) &&
           !epoll_ctl(all.epoll, EPOLL_CTL_ADD, descriptor->end, &event);
}

unsigned descriptor_make(const struct party *holder, uint64_t block, int *fd) {
    struct block_view view;
    int ends[2] = {-1, -1};
    if (!block_held(holder, block))
        return CUDA_ERROR_INVALID_VALUE;
    struct descriptor *descriptor = calloc(1, sizeof *descriptor);
    if (!descriptor || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        goto no_pipe;
    descriptor->block = block;
    descriptor->end = ends[0];
    if (!watch(descriptor) || block_hold(&all.party, block, &view))
        goto no_hold;
    descriptor->next = *chain_of(&descriptor->pipe);
    *chain_of(&descriptor->pipe) = descriptor;
    all.count++;
    *fd = ends[1];
    return CUDA_SUCCESS;
no_hold:
    close(ends[0]);
    close(ends[1]);
no_pipe:
    free(descriptor);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

unsigned descriptor_import(struct party *user, int fd, struct block_view *view) {
    const struct descriptor *descriptor = find(fd);
    return descriptor ? block_hold(user, descriptor->block, view) : CUDA_ERROR_UNKNOWN;
}
