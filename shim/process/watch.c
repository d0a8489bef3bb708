/* watch.c - see watch.h. */
#include "watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "directory/file.h"
#include "util/high_descriptor.h"
#include "util/program_signals.h"
#include "util/text.h"

/* Not IN_CLOSE_NOWRITE: every reader of files there, we too, would wake every process that waits.
 */
enum { EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_CREATE };

static void add(const struct gps_watch *watch, const struct gps_store *store,
                const char *directory) {
    char path[GPS_STORE_PATH + 16];
    struct gps_text text = GPS_TEXT(path);
    gps_text_add(&text, "%s%s", store->path, directory);
    inotify_add_watch(watch->fd, path, EVENTS);
}

void gps_watch_open(struct gps_watch *watch, const struct gps_store *store, unsigned what) {
    struct stat self;
    const int low = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->fd = low < 0 ? -1 : gps_descriptor_move_high(low);
    if (watch->fd < 0 || fstat(watch->fd, &self) != 0)
        return;
    watch->device = self.st_dev;
    watch->inode = self.st_ino;
    if (what & GPS_WATCH_PROCS)
        add(watch, store, "/procs");
    if (what & GPS_WATCH_REGIONS)
        add(watch, store, "/regions");
    if (what & GPS_WATCH_NAMES)
        add(watch, store, "/names");
    if (what & GPS_WATCH_ROOT)
        add(watch, store, "");
}

static void forget_if_lost(struct gps_watch *watch) {
    struct stat now;
    if (watch->fd >= 0 &&
        (fstat(watch->fd, &now) != 0 || now.st_dev != watch->device || now.st_ino != watch->inode))
        watch->fd = -1;
}

void gps_watch_wait(struct gps_watch *watch, uint64_t nanos) {
    forget_if_lost(watch);
    const uint64_t at_most = watch->fd < 0 ? 20000000u : 1000000000u;
    const uint64_t wait = nanos < at_most ? nanos : at_most;
    const struct timespec time = {.tv_sec = (time_t)(wait / 1000000000u),
                                  .tv_nsec = (long)(wait % 1000000000u)};
    struct pollfd poller = {.fd = watch->fd, .events = POLLIN};
    char events[1024];
    const int changed =
        ppoll(&poller, 1, &time, gps_program_signals); /* a negative fd: only the time */
    forget_if_lost(watch);
    if (changed > 0 && watch->fd >= 0)
        (void)!read(watch->fd, events, sizeof(events)); /* what is left wakes us once more */
}

void gps_watch_close(struct gps_watch *watch) {
    forget_if_lost(watch);
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}
