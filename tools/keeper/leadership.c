/*
 * leadership.c - becomes the keeper of a namespace, and stops being it.
 *
 * In this order: the lock, so that there is one; the lease, whose records those of the regions
 * then are; what a predecessor left; the socket. Back in the reverse order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/leader_lock.h"
#include "gpushare/keeper.h"
#include "keeper/keeper_client.h"
#include "keeper_process.h"

#define NAP         (GPS_SECOND / 200)
#define PATIENCE    (2 * GPS_SECOND) /* with a predecessor that is about to be gone */
#define DESCRIPTORS 64               /* besides connections and regions */

static void nap(void) {
    const struct timespec time = {.tv_nsec = (long)NAP};
    nanosleep(&time, NULL);
}

/* The lock may be held for a moment by one that ends, or by a gc. A keeper that lives answers. */
static int take_lock(struct keeper *keeper, struct gps_owner *other) {
    const uint64_t end = gps_clock_monotonic() + PATIENCE;
    uint64_t regions;
    *other = (struct gps_owner){0};
    for (;;) {
        int error = gps_leader_lock_take(&keeper->store, &keeper->lock);
        if (error != -EAGAIN)
            return error;
        if (gps_keeper_ping(&keeper->store, &keeper->kept.self, 10 * NAP, other, &regions) == 0 ||
            gps_clock_monotonic() >= end)
            return -EEXIST;
        nap();
    }
}

/* Every region is a descriptor, and every client. */
static void raise_limits(struct keeper *keeper) {
    struct rlimit limit;
    keeper->kept.max = 512;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        keeper->kept.max = limit.rlim_cur > 2 * (CONNECTIONS_MAX + DESCRIPTORS)
                               ? limit.rlim_cur - CONNECTIONS_MAX - DESCRIPTORS
                               : limit.rlim_cur / 2;
}

/* Its lock goes a moment before its lease does. */
static int adopt(struct keeper *keeper) {
    const uint64_t end = gps_clock_monotonic() + PATIENCE;
    struct gps_gc_counts counts;
    for (;;) {
        int error = gps_store_gc(&keeper->store, false, &counts);
        if (error == 0)
            error = kept_regions_adopt(&keeper->kept, gps_clock_monotonic());
        if (error != -EAGAIN || gps_clock_monotonic() >= end)
            return error == -EAGAIN ? -EBUSY : error;
        nap();
    }
}

/* Bound by its relative name: sun_path is short. In its place only when it listens: nobody finds a
 * socket that refuses. */
static int listen_at_home(struct keeper *keeper) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char temp[GPS_TEMP_NAME];
    gps_temp_format(&keeper->kept.self, temp);
    if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", temp) >=
            (int)sizeof(address.sun_path) ||
        chdir(keeper->store.path) != 0)
        return -ENAMETOOLONG;
    keeper->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (keeper->listener < 0)
        return -errno;
    if (bind(keeper->listener, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -errno;
    int error = 0;
    if (chmod(temp, 0600) != 0 || listen(keeper->listener, SOMAXCONN) != 0 ||
        rename(temp, GPS_KEEPER_SOCKET) != 0) {
        error = -errno;
        unlink(temp);
    }
    return error;
}

static int move_in(struct keeper *keeper) {
    int error = gps_lease_take(&keeper->store, &keeper->kept.self, &keeper->lease);
    if (error == 0) {
        error = adopt(keeper);
        if (error == 0)
            error = listen_at_home(keeper);
        if (error == 0)
            return 0;
        gps_lease_drop(&keeper->lease); /* what was to be adopted stays as it was */
    }
    gps_leader_lock_end(&keeper->store, keeper->lock);
    return error;
}

int leadership_take(struct keeper *keeper, struct gps_owner *other) {
    umask(077);
    keeper->listener = -1;
    keeper->kept.store = &keeper->store;
    gps_owner_self(&keeper->kept.self);
    raise_limits(keeper);
    int error = take_lock(keeper, other);
    return error != 0 ? error : move_in(keeper);
}

static bool is_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive;
    return !proc->alive;
}

void leadership_end(struct keeper *keeper) {
    struct gps_gc_counts counts;
    bool other = false;
    while (keeper->connection_count > 0)
        close(keeper->connections[--keeper->connection_count].fd);
    if (keeper->listener >= 0)
        close(keeper->listener);
    kept_regions_drop_all(&keeper->kept);
    gps_lease_drop(&keeper->lease);
    if (gps_proc_each(&keeper->store, is_alive, &other) == 0 && !other)
        gps_store_gc(&keeper->store, false, &counts);
    gps_leader_lock_end(&keeper->store, keeper->lock);
}
