/* Answers one request of one client; see serve.h. Never blocks: a stopped client hangs nobody. */
#include "serve.h"

#include "event.h"

#include "../protocol.h"

#include <cuda.h>
#include <errno.h>

static struct {
    struct memory devices[SIM_MAX_DEVICES];
    uint32_t count;
    int event_page;
} card;

int serve_start(uint32_t devices, uint64_t bytes) {
    card.count = devices;
    for (uint32_t i = 0; i < devices; i++) {
        int error = memory_create(&card.devices[i], bytes);
        if (error)
            return error;
    }
    return event_page_create(&card.event_page);
}

static bool send_reply(const struct client *client, const struct sim_reply *reply, bool hello) {
    struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE((SIM_MAX_DEVICES + 1) * sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (hello) {
        int fds[SIM_MAX_DEVICES + 1] = {card.event_page};
        size_t size = (card.count + 1) * sizeof *fds;
        for (uint32_t i = 0; i < card.count; i++)
            fds[i + 1] = card.devices[i].fd;
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), fds, size);
    }
    return sendmsg(client->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof *reply;
}

static void answer_block(struct sim_reply *reply, const struct block_view *view) {
    reply->device = view->device;
    reply->a = view->id;
    reply->b = view->offset;
    reply->c = view->size;
}

static void hello(struct client *client, const struct sim_request *request,
                  struct sim_reply *reply) {
    if (request->a != SIM_PROTOCOL) {
        reply->code = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
        return;
    }
    client_name(client);
    reply->a = client->party.id;
    reply->b = card.count;
    reply->c = card.devices[0].total;
}

static void allocate(struct client *client, const struct sim_request *request,
                     struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = block_allocate(&client->party, &card.devices[request->device], request->device,
                                 request->a, request->b, &view);
    answer_block(reply, &view);
}

static void open_block(struct client *client, const struct sim_request *request,
                       struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = client_alive(request->a)
                      ? block_open(&client->party, request->a, request->b, &view)
                      : CUDA_ERROR_INVALID_HANDLE;
    answer_block(reply, &view);
}

static void answer_stats(struct sim_reply *reply) {
    reply->a = client_count();
    reply->b = block_count();
    for (uint32_t i = 0; i < card.count; i++)
        reply->c += card.devices[i].used;
    reply->d = event_count();
}

static void answer(struct client *client, const struct sim_request *request,
                   struct sim_reply *reply) {
    struct memory *memory = &card.devices[request->device];
    switch ((enum sim_op)request->op) {
    case SIM_HELLO:
        hello(client, request, reply);
        break;
    case SIM_ALLOC:
        allocate(client, request, reply);
        break;
    case SIM_FREE:
        reply->code = block_free(&client->party, request->a);
        break;
    case SIM_EXPORT:
        reply->code = block_export(&client->party, request->a);
        break;
    case SIM_OPEN:
        open_block(client, request, reply);
        break;
    case SIM_CLOSE:
        reply->code = block_close(&client->party, request->a);
        break;
    case SIM_MEMINFO:
        reply->a = memory->total - memory->used;
        reply->b = memory->total;
        break;
    case SIM_EVENT_CREATE:
        reply->code = event_create(&client->party, &reply->a);
        break;
    case SIM_EVENT_OPEN:
        reply->code = event_open(&client->party, request->a, request->b);
        break;
    case SIM_STATS:
        answer_stats(reply);
        break;
    default:
        reply->code = CUDA_ERROR_INVALID_VALUE;
    }
}

bool serve(struct client *client) {
    struct sim_request request;
    struct sim_reply reply = {0};
    ssize_t got = recv(client->socket, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got != sizeof request || request.device >= card.count)
        return false;
    if (!client->party.id && request.op != SIM_HELLO)
        return false;
    answer(client, &request, &reply);
    return send_reply(client, &reply, request.op == SIM_HELLO && reply.code == CUDA_SUCCESS);
}
