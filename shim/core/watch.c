/* watch.c - see watch.h. */
#include "watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

/* Not IN_CLOSE_NOWRITE: whoever reads files there, we too, would wake everyone who waits. */
enum { EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_CREATE };

static void add(const struct gps_watch *watch, const struct gps_store *store,
                const char *directory) {
    char path[GPS_STORE_PATH + 16];
    struct gps_text text = GPS_TEXT(path);
    gps_text_str(&text, store->path);
    gps_text_str(&text, directory);
    inotify_add_watch(watch->fd, path, EVENTS);
}

void gps_watch_open(struct gps_watch *watch, const struct gps_store *store, unsigned what) {
    watch->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->fd < 0)
        return;
    if (what & GPS_WATCH_PROCS)
        add(watch, store, "/procs");
    if (what & GPS_WATCH_REGIONS)
        add(watch, store, "/regions");
    if (what & GPS_WATCH_NAMES)
        add(watch, store, "/names");
}

void gps_watch_wait(struct gps_watch *watch, uint64_t nanos, const sigset_t *signals) {
    const uint64_t at_most = watch->fd < 0 ? 20000000u : 1000000000u;
    const uint64_t wait = nanos < at_most ? nanos : at_most;
    const struct timespec time = {.tv_sec = (time_t)(wait / 1000000000u),
                                  .tv_nsec = (long)(wait % 1000000000u)};
    struct pollfd poller = {.fd = watch->fd, .events = POLLIN};
    char events[4096];
    const int changed = ppoll(&poller, 1, &time, signals); /* a negative fd: only the time */
    if (poller.revents & (POLLNVAL | POLLERR))             /* the program closed it under us */
        watch->fd = -1;
    while (changed > 0 && watch->fd >= 0 && read(watch->fd, events, sizeof(events)) > 0)
        continue;
}

void gps_watch_close(struct gps_watch *watch) {
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}
