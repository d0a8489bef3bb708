/*
 * connections.c - answers connections to the keeper: each has one request and one reply. A
 * connection whose reply has a descriptor stays until the peer hangs up, and has received it.
 *
 * Mostly the request has arrived when the connection is accepted, and then it is answered at once.
 * A request that is not valid, or is another user's, ends the connection without a reply.
 */
#include "keeper_state.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "directory/name.h"
#include "directory/processes.h"
#include "directory/region.h"
#include "keeper/keeper_protocol.h"
#include "offloaded.h"
#include "util/clock.h"
#include "util/descriptors.h"

/* The time to wait for a request while as many connections as possible are open. */
#define SHORT_TIMEOUT (20 * UINT64_C(1000000)) /* ns; below what clients wait for an answer */

/* --- replies --- */

/* Points the name at the region: its creator may die before it does that, and so may a keeper. */
static void point_name(const struct keeper *keeper, const struct gps_region_record *record) {
    struct gps_name_target target;
    if (record->name[0] == 0)
        return;
    if (gps_name_resolve(&keeper->store, record->name, &target) != 0 ||
        target.kind != GPS_NAME_REGION || !gps_id_equal(&target.region, &record->id))
        gps_name_point(&keeper->store, record->name, &keeper->regions.self, &record->id);
}

/* The list takes over the descriptor on success; then *descriptor becomes -1. */
static int connection_deposit(struct keeper *keeper, const struct gps_keeper_request *request,
                              int *descriptor) {
    struct keeper_region *region = region_list_find(&keeper->regions, &request->record.id);
    struct gps_region_record record;
    gps_request_record(request, &keeper->regions.self, &record);
    if (region ? !region_list_takes(region, &request->sender)
               : !gps_owner_equal(&request->sender, &record.creator))
        return -EPERM;
    const bool has = region && region->descriptor >= 0;
    const bool retired = region && region_list_retired(region);
    int status = has ? -EEXIST : 0;
    if (!region)
        status = region_list_add(&keeper->regions, &record, *descriptor, keeper->now);
    else if (!has)
        region_list_give(&keeper->regions, region, *descriptor);
    if (status == 0)
        *descriptor = -1;
    if ((status == 0 || has) && !retired)
        point_name(keeper, &record);
    if (status != 0)
        return status;
    sooner(&keeper->sweep_at, keeper->now + GPS_SECOND);
    return 0;
}

struct opening {
    const struct gps_keeper_request *request;
    bool is_new; /* so far no slot shows that the sender has the region open */
};

static bool opening_look_at_process(void *arg, const struct gps_proc *proc) {
    struct opening *opening = arg;
    if (!gps_owner_equal(&proc->header.owner, &opening->request->sender))
        return true;
    opening->is_new = !proc->unknown;
    for (unsigned i = 0; i < proc->slot_count; i++)
        if (gps_slot_has_region(&proc->slots[i]) && proc->slots[i].state != GPS_SLOT_INTENT &&
            gps_id_equal(&proc->slots[i].region, &opening->request->record.id))
            opening->is_new = false;
    return false;
}

/* Whether the sender is about to open the region, and does not have it yet. A keeper that replaces
 * this one has no slots. */
static bool is_new(const struct keeper *keeper, const struct gps_keeper_request *request) {
    struct opening opening = {request, false};
    gps_proc_each(&keeper->store, opening_look_at_process, &opening);
    return opening.is_new;
}

static int connection_get(const struct keeper *keeper, const struct gps_keeper_request *request,
                          int *give) {
    const struct keeper_region *region = region_list_find(&keeper->regions, &request->record.id);
    const bool retired = region && region_list_retired(region);
    if (!region || (retired && is_new(keeper, request)))
        return -ENOENT;
    if (offloaded_is(region))
        return -ENODATA;
    if (region->descriptor < 0)
        return region_list_lost(region, keeper->now) ? -ENOENT : -EAGAIN;
    *give = region->descriptor;
    return 0;
}

static int released(struct keeper *keeper, const struct gps_keeper_request *request) {
    struct keeper_region *region = region_list_find(&keeper->regions, &request->record.id);
    if (!region)
        return -ENOENT;
    const bool creator = gps_owner_equal(&request->sender, &region->record.creator);
    if (creator)
        region->since = 0; /* the creator has certainly released it: the grace period is over */
    /* before the reply, because the creator's free is complete when it returns */
    if (region_list_retired(region) || (creator && region->record.keep == GPS_KEEP_OWNER))
        region_list_end(&keeper->regions, region);
    sooner(&keeper->sweep_at, keeper->now);
    return 0;
}

static struct keeper_region *find_named(const struct keeper *keeper, const char *name) {
    const struct region_list *list = &keeper->regions;
    struct gps_name_target target;
    if (gps_name_resolve(&keeper->store, name, &target) == 0 && target.kind == GPS_NAME_REGION)
        return region_list_find(list, &target.region);
    struct keeper_region *region = list->first;
    while (region && (strcmp(region->record.name, name) != 0 || region_list_retired(region)))
        region = region->hh.next;
    return region;
}

static int connection_drop(struct keeper *keeper, const struct gps_keeper_request *request) {
    const char *name = request->record.name;
    struct keeper_region *region = name[0] != 0
                                       ? find_named(keeper, name)
                                       : region_list_find(&keeper->regions, &request->record.id);
    if (!region || region_list_retired(region))
        return -ENOENT;
    region_list_end(&keeper->regions, region);
    sooner(&keeper->sweep_at, keeper->now);
    return 0;
}

/* The copies are kept as the last sender says. */
static int reload(struct keeper *keeper, const struct gps_keeper_request *request, int *give) {
    struct keeper_region *region = region_list_find(&keeper->regions, &request->record.id);
    keeper->regions.keep = request->record.extent;
    return offloaded_give(&keeper->regions, region, &request->sender, keeper->now, give);
}

static int connection_answer(struct keeper *keeper, const struct gps_keeper_request *request,
                             int fd, int *descriptor, int *give) {
    switch (request->ask) {
    case GPS_KEEPER_REPLACE:
        return replacement_give(keeper, request, fd);
    case GPS_KEEPER_DEPOSIT:
        return connection_deposit(keeper, request, descriptor);
    case GPS_KEEPER_GET:
        return connection_get(keeper, request, give);
    case GPS_KEEPER_RELEASED:
        return released(keeper, request);
    case GPS_KEEPER_DROP:
        return connection_drop(keeper, request);
    case GPS_KEEPER_RECLAIM:
        return region_list_reclaim(&keeper->regions);
    case GPS_KEEPER_OFFLOAD:
        return offloaded_begin(&keeper->regions,
                               region_list_find(&keeper->regions, &request->record.id), descriptor);
    case GPS_KEEPER_RELOAD:
        return reload(keeper, request, give);
    default:
        return 0;
    }
}

/* --- connections --- */

/* Sends the reply. True: the descriptor went with it. Users want the process that serves; a keeper
 * that replaces this one wants the name in the records. */
static bool reply_to(const struct keeper *keeper, uint32_t ask, int fd, int status, int give) {
    const struct region_list *regions = &keeper->regions;
    const bool replaces = ask == GPS_KEEPER_REPLACE;
    struct gps_keeper_reply reply = {.status = status,
                                     .keeper = replaces ? regions->self : keeper->self,
                                     .regions = replaces ? atomic_load(&regions->table->deposits)
                                                         : region_list_count(regions)};
    gps_reply_seal(&reply);
    const int sent = gps_passing_send(fd, &reply, sizeof(reply), give);
    if (sent == -ETOOMANYREFS) {
        reply.status = -EAGAIN; /* the descriptors on their way will arrive */
        gps_reply_seal(&reply);
        gps_passing_send(fd, &reply, sizeof(reply), -1);
    }
    return sent == 0 && give >= 0;
}

enum outcome { NO_REQUEST_YET, ENDED, GIVEN };

/* The outcome is also NO_REQUEST_YET when another keeper has replaced this one, which ends with all
 * its connections. */
static enum outcome handle(struct keeper *keeper, int fd) {
    struct gps_keeper_request request;
    enum outcome outcome = ENDED;
    int descriptor, give = -1;
    ssize_t size = gps_passing_receive(fd, &request, sizeof(request), &descriptor);
    if (size == -EAGAIN)
        return NO_REQUEST_YET;
    if (size > 0 && !gps_request_check(&request, (size_t)size) &&
        (request.ask == GPS_KEEPER_OFFLOAD ||
         (descriptor >= 0) == (request.ask == GPS_KEEPER_DEPOSIT))) {
        int status = connection_answer(keeper, &request, fd, &descriptor, &give);
        if (keeper->replaced)
            outcome = NO_REQUEST_YET;
        else if (reply_to(keeper, request.ask, fd, status, give))
            outcome = GIVEN;
    }
    if (descriptor >= 0)
        close(descriptor);
    return outcome;
}

bool connections_waited_for(const struct keeper *keeper, size_t at) {
    return keeper->connections[at].given || keeper->given_count < GIVEN_MAX;
}

bool connections_full(const struct keeper *keeper) {
    return keeper->connection_count == CONNECTIONS_MAX || keeper->given_count >= GIVEN_MAX;
}

static void connection_end(struct keeper *keeper, size_t at) {
    close(keeper->connections[at].fd);
    keeper->given_count -= keeper->connections[at].given;
    memmove(&keeper->connections[at], &keeper->connections[at + 1],
            (--keeper->connection_count - at) * sizeof(*keeper->connections));
}

void connections_serve(struct keeper *keeper, size_t at) {
    struct connection *connection = &keeper->connections[at];
    const enum outcome outcome = connection->given ? ENDED : handle(keeper, connection->fd);
    if (outcome == ENDED) {
        connection_end(keeper, at);
    } else if (outcome == GIVEN) {
        connection->given = true;
        keeper->given_count++;
    }
}

void connections_accept(struct keeper *keeper) {
    for (int i = 0; !keeper->replaced && i < CONNECTIONS_MAX && !connections_full(keeper); i++) {
        int fd = accept4(keeper->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0 && gps_passing_is_ours(fd)) {
            keeper->connections[keeper->connection_count++] =
                (struct connection){fd, keeper->now, false};
            connections_serve(keeper, keeper->connection_count - 1);
        } else if (fd >= 0) {
            close(fd);
        } else {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                keeper->accept_after = keeper->now + SHORT_TIMEOUT;
            if (errno != EINTR && errno != ECONNABORTED)
                return;
        }
    }
}

uint64_t connections_expiry(const struct keeper *keeper) {
    const uint64_t timeout = connections_full(keeper) ? SHORT_TIMEOUT : GPS_KEEPER_TIMEOUT;
    return keeper->connection_count == 0 ? KEEPER_NEVER : keeper->connections[0].since + timeout;
}

void connections_expire(struct keeper *keeper) {
    while (connections_expiry(keeper) <= keeper->now)
        connection_end(keeper, 0);
}
