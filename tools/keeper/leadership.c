/*
 * leadership.c - becomes the keeper of a namespace, and stops being it.
 *
 * It takes, in this order, the lock, so that there is only one keeper; the lease, which regions'
 * records name as their owner; a predecessor's regions; and the socket. It ends in reverse order.
 */
#include "keeper_state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/leader_lock.h"
#include "directory/orphans.h"
#include "directory/view.h"
#include "keeper/keeper_client.h"
#include "util/clock.h"

#define RETRY       (GPS_SECOND / 200)
#define TIMEOUT     (2 * GPS_SECOND) /* with a predecessor that is about to end */
#define DESCRIPTORS 64               /* besides connections and regions */

/* Tries again because a keeper that ends, or a gc, may hold the lock for a moment. A living keeper
 * answers a ping. */
static int take_lock(struct keeper *keeper, struct gps_owner *other) {
    const uint64_t end = gps_clock_monotonic() + TIMEOUT;
    uint64_t regions;
    *other = (struct gps_owner){0};
    for (;;) {
        const int lock = gps_leader_lock_take(&keeper->store);
        if (lock >= 0)
            keeper->lock = lock;
        if (lock != -EAGAIN)
            return lock < 0 ? lock : 0;
        if (gps_keeper_ping(&keeper->store, &keeper->regions.self, 10 * RETRY, other, &regions) ==
                0 ||
            gps_clock_monotonic() >= end)
            return -EEXIST;
        usleep(RETRY / 1000);
    }
}

/* Every region and every connection needs a descriptor. */
static void raise_limits(struct keeper *keeper) {
    struct rlimit limit;
    keeper->regions.max = 512;
    keeper->regions.keep = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        keeper->regions.max = limit.rlim_cur > 2 * (CONNECTIONS_MAX + DESCRIPTORS)
                                  ? limit.rlim_cur - CONNECTIONS_MAX - DESCRIPTORS
                                  : limit.rlim_cur / 2;
}

/* A predecessor's lock ends a moment before its lease. */
static int leadership_adopt(struct keeper *keeper) {
    const uint64_t end = gps_clock_monotonic() + TIMEOUT;
    struct gps_gc_counts counts;
    for (;;) {
        gps_store_gc(&keeper->store, false, &counts); /* files that it cannot remove do no harm */
        int status = region_list_adopt(&keeper->regions, gps_clock_monotonic(), false);
        if (status != -EAGAIN || gps_clock_monotonic() >= end)
            return status == -EAGAIN ? -EBUSY : status;
        usleep(RETRY / 1000);
    }
}

/* The socket is bound by its relative name, because sun_path is short. It gets its final name when
 * it listens, so that no process finds a socket that refuses. */
static int leadership_open_socket(struct keeper *keeper) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char temp[GPS_TEMP_NAME];
    gps_temp_format(&keeper->regions.self, temp);
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", temp) >=
            (int)sizeof(address.sun_path) ||
        chdir(keeper->store.path) != 0)
        return -ENAMETOOLONG;
    keeper->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (keeper->listener < 0)
        return -errno;
    if (bind(keeper->listener, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -errno;
    if (chmod(temp, 0600) == 0 && listen(keeper->listener, SOMAXCONN) == 0 &&
        rename(temp, GPS_KEEPER_SOCKET) == 0)
        return 0;
    int status = -errno;
    unlink(temp);
    return status;
}

static int leadership_start(struct keeper *keeper) {
    int status = gps_lease_take_shared(&keeper->store, &keeper->regions.self, &keeper->lease);
    if (status == 0) {
        incumbent_publish(keeper);
        status = leadership_adopt(keeper);
        if (status == 0)
            status = leadership_open_socket(keeper);
        if (status == 0)
            return 0;
        gps_lease_drop(&keeper->lease); /* the regions to adopt stay as they were */
    }
    gps_leader_lock_end(&keeper->store, keeper->lock);
    return status;
}

int leadership_take(struct keeper *keeper, bool replace, struct gps_owner *other) {
    umask(077);
    keeper->listener = -1;
    keeper->regions.store = &keeper->store;
    incumbent_begin(keeper);
    keeper->regions.self = keeper->self;
    raise_limits(keeper);
    int status = region_list_begin(&keeper->regions);
    if (status == 0)
        status = take_lock(keeper, other);
    if (status == -EEXIST && replace && other->pid != 0)
        return replacement_take(keeper);
    return status != 0 ? status : leadership_start(keeper);
}

void leadership_end(struct keeper *keeper) {
    while (keeper->connection_count > 0)
        close(keeper->connections[--keeper->connection_count].fd);
    if (keeper->listener >= 0)
        close(keeper->listener);
    while (keeper->regions.first)
        region_list_drop(&keeper->regions, keeper->regions.first);
    gps_lease_drop(&keeper->lease);
    view_store_leave(&keeper->store);
    gps_leader_lock_end(&keeper->store, keeper->lock);
}
