/*
 * replacement.c - one keeper takes another's place (gpushare/keeper.h, GPS_KEEPER_REPLACE).
 *
 * The new keeper gets the descriptors one by one, as any client does, while the old one serves.
 * Then it gets listener, lock and lease, if no region was deposited meanwhile, and it lacks no
 * descriptor that the old one has. So each request is answered by one or the other. The first slot
 * of the lease, which the old one writes, names the family that serves: whichever process dies, one
 * of them serves, or its stand-by. A keeper, its stand-by and their successors are one family.
 */
#include "keeper_state.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/keeper_client.h"
#include "keeper/keeper_protocol.h"
#include "offloaded.h"
#include "util/clock.h"
#include "util/descriptors.h"

#define WITHIN (20 * GPS_SECOND) /* each deposit of a process undoes a try */
#define LOOK   (GPS_SECOND / 100)
#define ASKED  (GPS_SECOND / 50) /* for a descriptor that has to be deposited again */

enum { LISTENER, LOCK, LEASE, HANDED_OVER };

static bool replacement_is_readable(int fd, uint64_t nanos) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return TEMP_FAILURE_RETRY(poll(&wait, 1, (int)(nanos / 1000000))) == 1;
}

/* --- which process serves --- */

void incumbent_begin(struct keeper *keeper) {
    const uint64_t random[] = {gps_random(), gps_random()};
    gps_owner_self(&keeper->self);
    memcpy(keeper->family.bytes, random, sizeof(keeper->family.bytes));
}

/* Publishes that a keeper of another family serves. 0 or -errno. */
static int incumbent_yield(struct keeper *keeper, const struct gps_id *family,
                           const struct gps_owner *server) {
    struct gps_slot slot = {.region = *family,
                            .address = server->pid,
                            .since = server->pid_ns,
                            .state = GPS_SLOT_OPEN,
                            .via = GPS_VIA_KEEPER,
                            .generation = server->start,
                            .reserved = (uint64_t)keeper->standby};
    gps_slot_seal(&slot);
    return gps_lease_write(&keeper->lease, 0, &slot);
}

void incumbent_publish(struct keeper *keeper) {
    gps_owner_self(&keeper->self);
    incumbent_yield(keeper, &keeper->family, &keeper->self);
}

bool incumbent_is_ours(const struct keeper *keeper) {
    struct gps_slot slot;
    const ssize_t n = gps_file_read(keeper->lease.lock_fd, &slot, sizeof(slot),
                                    (off_t)sizeof(struct gps_proc_header));
    return n == (ssize_t)sizeof(slot) && gps_id_equal(&slot.region, &keeper->family);
}

/* --- the old keeper --- */

static int replacement_hand_over(const struct keeper *keeper, int fd) {
    const int descriptors[HANDED_OVER] = {keeper->listener, keeper->lock, keeper->lease.lock_fd};
    struct gps_keeper_reply reply = {.keeper = keeper->regions.self};
    int status = 0;
    gps_reply_seal(&reply);
    for (int i = 0; i < HANDED_OVER && status == 0; i++)
        status = gps_passing_send(fd, &reply, sizeof(reply), descriptors[i]);
    return status;
}

static bool is_confirmed(int fd) {
    char byte;
    return replacement_is_readable(fd, GPS_KEEPER_HANDSHAKE) &&
           TEMP_FAILURE_RETRY(recv(fd, &byte, sizeof(byte), MSG_DONTWAIT)) == sizeof(byte);
}

static uint64_t count_lacking(const struct region_list *list) {
    uint64_t count = 0;
    for (const struct keeper_region *region = list->first; region; region = region->hh.next)
        count += region->descriptor < 0 && region->copy < 0;
    return count;
}

static uint64_t count_offloaded(const struct region_list *list) {
    uint64_t count = 0;
    for (const struct keeper_region *region = list->first; region; region = region->hh.next)
        count += offloaded_is(region);
    return count;
}

/* Whether all regions are published: the new keeper finds them by their records. */
static bool are_published(const struct keeper *keeper) {
    for (const struct keeper_region *region = keeper->regions.first; region;
         region = region->hh.next)
        if (!region->published)
            return false;
    return true;
}

int replacement_give(struct keeper *keeper, const struct gps_keeper_request *request, int fd) {
    if (request->record.generation != atomic_load(&keeper->regions.table->deposits) ||
        request->record.extent > count_lacking(&keeper->regions) ||
        request->record.requested < count_offloaded(&keeper->regions))
        return -EAGAIN;
    if (!are_published(keeper))
        return -ENOSPC;
    int status = replacement_hand_over(keeper, fd);
    if (status == 0 && !is_confirmed(fd))
        status = -ETIMEDOUT;
    if (status == 0)
        status = incumbent_yield(keeper, &request->record.id, &request->sender);
    keeper->replaced = status == 0;
    keeper->ending |= keeper->replaced;
    return status;
}

/* --- the new keeper --- */

struct taking {
    struct keeper *keeper;
    struct gps_owner sender;
    uint64_t deposits;            /* so far, at the old keeper */
    uint64_t lacking;             /* regions of the old keeper without a descriptor here */
    int descriptors[HANDED_OVER]; /* -1: not got */
};

static int get_reply(int fd, struct gps_keeper_reply *reply, int *descriptor) {
    *descriptor = -1;
    if (!replacement_is_readable(fd, GPS_KEEPER_TIMEOUT))
        return -ETIMEDOUT;
    const ssize_t n = gps_passing_receive(fd, reply, sizeof(*reply), descriptor);
    if (n <= 0)
        return n < 0 ? (int)n : -ECONNRESET;
    return gps_reply_check(reply, (size_t)n) ? -EBADMSG : reply->status;
}

/* Gets listener, lock and lease. 0: all three are here. */
static int get_three(struct taking *taking, int fd) {
    struct gps_keeper_reply reply = {0};
    int status = 0;
    for (int i = 0; i < HANDED_OVER && status == 0; i++)
        status = get_reply(fd, &reply, &taking->descriptors[i]);
    if (status == -EAGAIN) {
        taking->keeper->regions.self = reply.keeper;
        taking->deposits = reply.regions;
    }
    return status;
}

/* Whether the old keeper has yielded, has ended, or has given up waiting. */
static bool replacement_is_decided(const struct keeper *keeper, int fd) {
    struct gps_keeper_reply reply;
    const ssize_t n = recv(fd, &reply, sizeof(reply), 0);
    return n == 0 || (n < 0 && errno == ECONNRESET) || incumbent_is_ours(keeper);
}

static int confirm(struct taking *taking, int fd) {
    struct keeper *keeper = taking->keeper;
    char byte = 0;
    int status = gps_lease_take_over(&keeper->store, &keeper->regions.self,
                                     taking->descriptors[LEASE], &keeper->lease);
    if (status == 0)
        status = gps_passing_send(fd, &byte, sizeof(byte), -1);
    while (status == 0 && !replacement_is_decided(keeper, fd))
        replacement_is_readable(fd, LOOK);
    return status == 0 && !incumbent_is_ours(keeper) ? -ECONNRESET : status;
}

static void taking_close(struct taking *taking) {
    for (int i = 0; i < HANDED_OVER; i++) {
        if (taking->descriptors[i] >= 0)
            close(taking->descriptors[i]);
        taking->descriptors[i] = -1;
    }
}

static int taking_ask(struct taking *taking) {
    struct gps_keeper_request request = {.ask = GPS_KEEPER_REPLACE, .sender = taking->sender};
    request.record.id = taking->keeper->family;
    request.record.generation = taking->deposits;
    request.record.extent = taking->lacking;
    request.record.requested = count_offloaded(&taking->keeper->regions);
    gps_request_seal(&request);
    const int fd = gps_keeper_connect(&taking->keeper->store);
    if (fd < 0)
        return fd;
    int status = gps_passing_send(fd, &request, sizeof(request), -1);
    if (status == 0)
        status = get_three(taking, fd);
    if (status == 0)
        status = confirm(taking, fd);
    if (status != 0)
        taking_close(taking);
    close(fd);
    return status;
}

static int get_region(struct taking *taking, struct keeper_region *region) {
    const struct gps_store *store = &taking->keeper->store;
    struct region_list *list = &taking->keeper->regions;
    int descriptor;
    int status = gps_keeper_get(store, &region->record.id, &taking->sender, ASKED, &descriptor);
    if (status == 0)
        region_list_give(list, region, descriptor);
    if (status != -ENODATA)
        return status;
    status = gps_keeper_reload(store, &region->record.id, &taking->sender, list->keep, ASKED,
                               &descriptor);
    if (status == 0)
        offloaded_take(list, region, descriptor);
    return status == -ENODATA ? -ETIMEDOUT : status;
}

/* Gets the descriptors that are lacking. A region that is gone or lost needs none; one that the old
 * keeper lacks, or has no time to give, may get it yet. */
static int get_regions(struct taking *taking) {
    struct region_list *list = &taking->keeper->regions;
    int status = region_list_adopt(list, gps_clock_monotonic(), true);
    taking->lacking = 0;
    for (struct keeper_region *region = list->first; region && status == 0;
         region = region->hh.next) {
        if (region->descriptor >= 0 || region->copy >= 0)
            continue;
        status = get_region(taking, region);
        taking->lacking += status == -ETIMEDOUT;
        if (status == -ENOENT || status == -ETIMEDOUT)
            status = 0;
    }
    return status;
}

static void taking_take_over(struct taking *taking) {
    struct keeper *keeper = taking->keeper;
    keeper->listener = taking->descriptors[LISTENER];
    keeper->lock = taking->descriptors[LOCK];
    incumbent_publish(keeper);
    region_list_settle(&keeper->regions);
}

/* Whether to try again: a region was deposited meanwhile, or the old keeper was killed, and its
 * stand-by goes on. A keeper that does not know the request hangs up, too. */
static bool is_repeated(int status, unsigned *hung_up) {
    return status == -EAGAIN || (status == -ECONNRESET && ++*hung_up < 4);
}

int replacement_take(struct keeper *keeper) {
    struct taking taking = {.keeper = keeper,
                            .sender = keeper->self,
                            .deposits = UINT64_MAX,
                            .descriptors = {-1, -1, -1}};
    const uint64_t end = gps_clock_monotonic() + WITHIN;
    unsigned hung_up = 0;
    int status = taking_ask(&taking);
    while (is_repeated(status, &hung_up) && gps_clock_monotonic() < end) {
        usleep(status == -EAGAIN ? 0 : 10000);
        status = get_regions(&taking);
        if (status == 0)
            status = taking_ask(&taking);
    }
    if (status == 0)
        taking_take_over(&taking);
    return status;
}
