/* Answers one request of one client; see serve.h. Never blocks: a stopped client hangs nobody. */
#include "serve.h"

#include "descriptor.h"
#include "event.h"
#include "process.h"

#include "../message.h"

#include <cuda.h>

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
    int error = descriptor_start();
    return error ? error : event_page_create(&card.event_page);
}

/* The descriptors of a greeting stay ours. */
static void fill_greeting(struct parcel *parcel) {
    parcel->fds[parcel->count++] = card.event_page;
    for (uint32_t i = 0; i < card.count; i++)
        parcel->fds[parcel->count++] = card.devices[i].fd;
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

static void create(struct client *client, const struct sim_request *request,
                   struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = block_create(&client->party, &card.devices[request->device], request->device,
                               request->a, &view);
    answer_block(reply, &view);
}

static void share(struct client *client, const struct sim_request *request, struct sim_reply *reply,
                  struct parcel *parcel) {
    reply->code = descriptor_make(&client->party, request->a, &parcel->fds[0]);
    parcel->count = reply->code == CUDA_SUCCESS;
}

static void import(struct client *client, const struct parcel *parcel, struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = parcel->count == 1 ? descriptor_import(&client->party, parcel->fds[0], &view)
                                     : CUDA_ERROR_INVALID_VALUE;
    answer_block(reply, &view);
}

/* A runtime of AMD's names the memory itself: it may be had while anybody has it. */
static void attach(struct client *client, const struct sim_request *request,
                   struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = block_hold(&client->party, request->a, &view);
    answer_block(reply, &view);
}

static void moved(const struct client *client, const struct sim_request *request,
                  struct sim_reply *reply) {
    struct block_view view = {0};
    reply->code = block_moved(&client->party, request->a, &view);
    answer_block(reply, &view);
}

static void answer_stats(struct sim_reply *reply) {
    reply->a = client_count();
    reply->b = block_count();
    for (uint32_t i = 0; i < card.count; i++)
        reply->c += card.devices[i].used;
    reply->d = event_count();
}

/* `parcel`: what came with the request. */
static void answer(struct client *client, const struct sim_request *request,
                   const struct parcel *parcel, struct sim_reply *reply) {
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
        reply->code = block_close(&client->party, request->a, request->b != 0);
        break;
    case SIM_CREATE:
        create(client, request, reply);
        break;
    case SIM_IMPORT:
        import(client, parcel, reply);
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
    case SIM_ATTACH:
        attach(client, request, reply);
        break;
    case SIM_STATS:
        answer_stats(reply);
        break;
    case SIM_PROCESS:
        reply->code =
            process_ask((int)request->a, (enum sim_process)request->b, &reply->a, &reply->b);
        break;
    case SIM_MOVED:
        moved(client, request, reply);
        break;
    default:
        reply->code = CUDA_ERROR_INVALID_VALUE;
    }
}

/* Two requests are answered with descriptors: those of a greeting are ours, a shared one is not. */
static bool reply_to(struct client *client, const struct sim_request *request,
                     const struct parcel *came) {
    struct sim_reply reply = {0};
    struct parcel parcel = {.count = 0};
    if (request->op == SIM_SHARE)
        share(client, request, &reply, &parcel);
    else
        answer(client, request, came, &reply);
    if (request->op == SIM_HELLO && reply.code == CUDA_SUCCESS)
        fill_greeting(&parcel);
    bool sent = sim_send(client->socket, &reply, sizeof reply, &parcel, MSG_DONTWAIT);
    if (request->op == SIM_SHARE)
        sim_discard(&parcel);
    return sent;
}

bool serve(struct client *client) {
    struct sim_request request;
    struct parcel parcel;
    ssize_t got = sim_receive(client->socket, &request, sizeof request, &parcel, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN;
    bool good = got == sizeof request && request.device < card.count &&
                (client->party.id || request.op == SIM_HELLO);
    good = good && reply_to(client, &request, &parcel);
    sim_discard(&parcel);
    return good;
}
