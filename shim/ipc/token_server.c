#include "token.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gpushare/token.h"
#include "process/membership.h"
#include "process/process.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "vmm/token_socket.h"

enum { LINES = 16 /* open at a time; the oldest one is closed for a new one */ };

/* A program may close all descriptors that it does not know, and get the number for one of its own:
 * ours is known by its inode. */
struct line {
    int fd;
    ino_t inode; /* 0: there is none */
};

static struct {
    gps_token_find_fn *find;
    struct line listener; /* the thread's, once that runs */
    _Atomic bool started, stopped, busy;
} state;

static ino_t inode_of(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static bool line_is_ours(const struct line *line) {
    return line->inode && inode_of(line->fd) == line->inode;
}

static void close_line(const struct line *line) {
    if (line_is_ours(line))
        close(line->fd);
}

/* --- one request --- */

/* Whether the block is still mapped at its address, by this handle. */
static bool token_block_is_mapped(const struct gps_token_block *block, uint64_t handle) {
    struct gps_passable found;
    return gps_passable_at(block->at, &found) && found.at == block->at &&
           found.serial == block->serial && found.handle == handle;
}

/* The blocks of the run from an address on. */
static int list_blocks(const struct gps_token_run *run, uint64_t from,
                       struct gps_token_reply *reply) {
    struct gps_passable found;
    const uint64_t end = run->at + run->size;
    uint64_t at = from ? from : run->at;
    if (at < run->at || at >= end)
        return -EINVAL;
    while (at < end && reply->count < GPS_TOKEN_BLOCKS) {
        if (!gps_passable_at(at, &found) || found.at != at || found.size > end - at)
            return -ESTALE;
        reply->blocks[reply->count++] =
            (struct gps_token_block){.at = at, .size = found.size, .serial = found.serial};
        at += found.size;
    }
    return 0;
}

/* Retains the memory first, then checks that it is the block's: it cannot change any more. */
static int export_block(const struct gps_token_block *block, int *descriptor) {
    uint64_t handle;
    if (gps_ops->block_retain(block->at, &handle) != GPS_OK)
        return -ESTALE;
    int status = token_block_is_mapped(block, handle) ? 0 : -ESTALE;
    if (status == 0 && gps_ops->block_export(handle, descriptor) != GPS_OK)
        status = -EMFILE;
    gps_ops->block_release(handle);
    return status;
}

static int export_blocks(const struct gps_token_reply *reply, uint64_t wanted, int *descriptors,
                         unsigned *count) {
    int status = reply->count < GPS_TOKEN_BLOCKS && wanted >> reply->count ? -EINVAL : 0;
    for (unsigned n = 0; n < reply->count && status == 0; n++)
        if (wanted >> n & 1) {
            status = export_block(&reply->blocks[n], &descriptors[*count]);
            *count += status == 0;
        }
    return status;
}

static void token_reply_prepare(const struct gps_token_request *request,
                                struct gps_token_reply *reply, int *descriptors, unsigned *count) {
    struct gps_token_run run = {.at = 0};
    *reply = (struct gps_token_reply){
        .magic = GPS_TOKEN_MAGIC, .version = GPS_FORMAT_VERSION, .id = request->id};
    reply->status = state.find(&request->id, &run) ? 0 : -ESTALE;
    reply->place = run.place;
    reply->place_size = run.place_size;
    reply->run = run.at;
    reply->run_size = run.size;
    if (reply->status == 0)
        reply->status = list_blocks(&run, request->from, reply);
    if (reply->status == 0)
        reply->status = export_blocks(reply, request->wanted, descriptors, count);
}

static int send_reply(int line, const struct gps_token_request *request) {
    struct gps_token_reply reply;
    int descriptors[GPS_TOKEN_BLOCKS];
    unsigned count = 0;
    token_reply_prepare(request, &reply, descriptors, &count);
    const unsigned sent = reply.status == 0 ? count : 0;
    int status = gps_passing_send_many(line, &reply, sizeof(reply), descriptors, sent);
    gps_passing_close(descriptors, count);
    if (status != -ETOOMANYREFS)
        return status;
    reply.status = -EAGAIN;
    return gps_passing_send(line, &reply, sizeof(reply), -1);
}

static int send_refusal(int line, const struct gps_token_request *request, int status) {
    const struct gps_token_reply reply = {.magic = GPS_TOKEN_MAGIC,
                                          .version = GPS_FORMAT_VERSION,
                                          .id = request->id,
                                          .status = status};
    return gps_passing_send(line, &reply, sizeof(reply), -1);
}

/* False: the line is to be closed. */
static bool line_answer(int line) {
    struct gps_token_request request;
    int descriptor, status = -ECANCELED;
    const ssize_t size = gps_passing_receive(line, &request, sizeof(request), &descriptor);
    if (descriptor >= 0)
        close(descriptor);
    if (size == -EAGAIN)
        return true;
    if (!gps_token_request_valid(&request, size))
        return false;
    /* Set before the phase and `stopped` are read: suspend and _stop set one, then read `busy`. */
    atomic_store(&state.busy, true);
    if (gps_process_phase() == GPS_PHASE_SUSPENDED) {
        status = send_refusal(line, &request, -EBUSY);
    } else if (!atomic_load(&state.stopped)) {
        GPS_DRIVER_SCOPE();
        status = send_reply(line, &request);
    }
    atomic_store(&state.busy, false);
    return status == 0;
}

/* --- the thread --- */

static int listen_here(void) {
    const int fd = gps_token_socket_listen(gps_membership_store(), gps_process_self());
    if (fd < 0)
        return fd;
    state.listener = (struct line){fd, inode_of(fd)};
    return 0;
}

/* By age, the oldest first. */
struct lines {
    struct line all[LINES];
    nfds_t count;
};

static void lines_drop(struct lines *lines, nfds_t at) {
    close_line(&lines->all[at]);
    lines->count--;
    memmove(&lines->all[at], &lines->all[at + 1], (lines->count - at) * sizeof(*lines->all));
}

static void admit(struct lines *lines) {
    const int fd = accept4(state.listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (!gps_passing_is_ours(fd)) {
        close(fd);
        return;
    }
    if (lines->count == LINES)
        lines_drop(lines, 0);
    const int high = gps_descriptor_move_high(fd);
    lines->all[lines->count++] = (struct line){high, inode_of(high)};
}

/* Drops lines that are not ours any more. False: no process can reach us, and it is tried again. */
static bool look_after(struct lines *lines) {
    for (nfds_t i = lines->count; i > 0; i--)
        if (!line_is_ours(&lines->all[i - 1]))
            lines_drop(lines, i - 1);
    if (line_is_ours(&state.listener))
        return true;
    gps_token_socket_remove(gps_membership_store(), gps_process_self());
    return listen_here() == 0;
}

static void token_server_turn(struct lines *lines) {
    struct pollfd all[1 + LINES] = {{.fd = state.listener.fd, .events = POLLIN}};
    const nfds_t count = lines->count;
    for (nfds_t i = 0; i < count; i++)
        all[1 + i] = (struct pollfd){.fd = lines->all[i].fd, .events = POLLIN};
    if (poll(all, 1 + count, -1) <= 0)
        return;
    for (nfds_t i = count; i > 0; i--)
        if (all[i].revents &&
            !(line_is_ours(&lines->all[i - 1]) && line_answer(lines->all[i - 1].fd)))
            lines_drop(lines, i - 1);
    if (all[0].revents && line_is_ours(&state.listener))
        admit(lines);
}

static void *serve(void *unused) {
    struct lines lines = {.count = 0};
    prctl(PR_SET_NAME, "gpushare-token");
    while (!atomic_load(&state.stopped)) {
        if (look_after(&lines))
            token_server_turn(&lines);
        else
            usleep(100000);
    }
    return unused;
}

int gps_token_server_start(gps_token_find_fn *find) {
    if (atomic_load(&state.started) || atomic_load(&state.stopped))
        return atomic_load(&state.stopped) ? -ECANCELED : 0;
    const int status = listen_here();
    if (status < 0)
        return status;
    state.find = find;
    atomic_store(&state.started, gps_thread_start(serve, NULL));
    if (atomic_load(&state.started))
        return 0;
    gps_token_socket_remove(gps_membership_store(), gps_process_self());
    close_line(&state.listener);
    return -EAGAIN;
}

void gps_token_server_stop(void) {
    if (atomic_exchange(&state.stopped, true) || !atomic_load(&state.started))
        return;
    gps_token_socket_remove(gps_membership_store(), gps_process_self());
    gps_thread_await(&state.busy, GPS_SECOND); /* after the request under way */
}

bool gps_token_server_await(uint64_t within) {
    return !atomic_load(&state.started) || gps_thread_await(&state.busy, within);
}

/* Closes the parent's socket: an open one would accept requests that no thread here answers. */
void gps_token_server_reset(void) {
    close_line(&state.listener);
    memset((void *)&state, 0, sizeof(state));
}
