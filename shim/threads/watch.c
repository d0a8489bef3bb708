#include "watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "process/membership.h"
#include "process/references.h"
#include "thread.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "util/program_signals.h"
#include "util/text.h"

/* Not IN_CLOSE_NOWRITE: every reader of files, this library too, would wake all who wait. */
enum { EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO | IN_CREATE };

static void watch_add_directory(const struct gps_watch *watch, const struct gps_store *store,
                                const char *directory) {
    GPS_NEW_TEXT(text, GPS_STORE_PATH + 16);
    gps_text_add(&text, "%s%s", store->path, directory);
    inotify_add_watch(watch->fd, text.bytes, EVENTS);
}

void gps_watch_open(struct gps_watch *watch, const struct gps_store *store, unsigned what) {
    static const char *const directories[] = {"/procs", "/regions", "/names", ""}; /* a bit each */
    struct stat self;
    const int low = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->fd = low < 0 ? -1 : gps_descriptor_move_high(low);
    if (watch->fd < 0 || fstat(watch->fd, &self) != 0)
        return;
    watch->device = self.st_dev;
    watch->inode = self.st_ino;
    for (unsigned i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        if (what >> i & 1)
            watch_add_directory(watch, store, directories[i]);
}

static bool watch_is_whole(const struct gps_watch *watch) {
    return gps_descriptor_is_of(watch->fd, watch->device, watch->inode);
}

static int fd_of(const struct gps_watch *watch) {
    return watch_is_whole(watch) ? watch->fd : -1;
}

bool gps_watch_sleep(const struct gps_watch *watch, uint64_t nanos) {
    const int fd = fd_of(watch);
    const uint64_t at_most = fd < 0 ? 20000000u : 1000000000u;
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    /* a negative fd: only the time */
    return gps_program_signals_poll(&poller, nanos < at_most ? nanos : at_most) > 0 &&
           fd_of(watch) >= 0;
}

void gps_watch_wait(struct gps_watch *watch, uint64_t nanos) {
    char events[1024];
    if (gps_watch_sleep(watch, nanos))
        (void)!read(watch->fd, events, sizeof(events)); /* events that are left wake us once more */
}

/* --- single files --- */

int gps_watch_file(const struct gps_watch *watch, const char *path, uint32_t events) {
    const int number = watch_is_whole(watch) ? inotify_add_watch(watch->fd, path, events) : -1;
    return number < 0 ? -EIO : number;
}

void gps_watch_unfile(const struct gps_watch *watch, int number) {
    if (watch_is_whole(watch))
        inotify_rm_watch(watch->fd, number);
}

/* The kernel reports the end of a watch. */
void gps_watch_wake(const struct gps_watch *watch, const char *path) {
    gps_watch_unfile(watch, gps_watch_file(watch, path, IN_DELETE_SELF));
}

bool gps_watch_quiet(const struct gps_watch *watch) {
    int bytes;
    return watch_is_whole(watch) && ioctl(watch->fd, FIONREAD, &bytes) == 0 && bytes == 0;
}

/* Events of files have no names, so they have one size. Lost events make one numbered -1. */
void gps_watch_changed(struct gps_watch *watch, bool (*fn)(int number)) {
    struct inotify_event events[32];
    ssize_t size;
    do {
        watch->fd = fd_of(watch);
        size = watch->fd < 0 ? -1 : read(watch->fd, events, sizeof(events));
        for (ssize_t i = 0; i < size / (ssize_t)sizeof(events[0]); i++)
            fn(events[i].wd);
    } while (size == (ssize_t)sizeof(events));
    if (size >= 0 || (watch->fd >= 0 && errno == EAGAIN))
        return;
    gps_watch_close(watch); /* the instance works no more */
    fn(-1);
}

void gps_watch_close(struct gps_watch *watch) {
    if (watch_is_whole(watch))
        close(watch->fd);
    watch->fd = -1;
}

/* --- threads that watch --- */

static bool background_is_over(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    const bool over = task->stop || (task->left && !task->left());
    if (over)
        task->running = false;
    return over;
}

static void *background_run(void *arg) {
    struct gps_background *task = arg;
    struct gps_watch watch;
    prctl(PR_SET_NAME, task->name);
    gps_watch_open(&watch, gps_membership_store(), task->watched);
    while (!background_is_over(task)) {
        gps_watch_wait(&watch, task->turn());
        usleep(5000); /* many changes make one turn */
    }
    gps_watch_close(&watch);
    return NULL;
}

int gps_background_start(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    if (!task->running && !task->stop)
        task->running = gps_thread_start(background_run, task);
    const bool fine = task->running || task->stop;
    return fine ? 0 : -EAGAIN;
}

void gps_background_stop(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    task->stop = true;
}

bool gps_background_stopped(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    return task->stop;
}

void gps_background_reset(struct gps_background *task) {
    memset((void *)&task->lock, 0, sizeof(task->lock));
    task->running = task->stop = false;
}

/* --- waits --- */

void gps_wait_begin(struct gps_wait *wait, enum gps_slot_via whom, const char *name,
                    const struct gps_id *id, uint64_t most, unsigned what) {
    *wait = (struct gps_wait){.whom = whom,
                              .name = name,
                              .id = id,
                              .began = gps_clock_monotonic(),
                              .most = most,
                              .slot = GPS_NO_SLOT};
    gps_watch_open(&wait->watch, gps_membership_store(), what);
}

static void wait_add_name(struct gps_text *text, const struct gps_wait *wait) {
    char id[GPS_ID_HEX];
    if (*wait->name) {
        gps_text_str(text, wait->name);
        return;
    }
    gps_id_format(wait->id, id);
    gps_text_bytes(text, id, 8);
}

static void wait_publish(struct gps_wait *wait) {
    const uint64_t since = gps_clock_now() - (gps_clock_monotonic() - wait->began);
    struct gps_wait_slot slot = {.state = GPS_SLOT_OPEN,
                                 .via = (uint32_t)wait->whom,
                                 .since = since,
                                 .until = since + wait->most};
    struct gps_text name = GPS_TEXT(slot.name);
    wait_add_name(&name, wait);
    (void)gps_references_wait(&slot, &wait->slot);
}

static void wait_say(const struct gps_wait *wait) {
    GPS_NEW_TEXT(text, 256);
    gps_text_str(&text, "waiting up to ");
    gps_text_duration(&text, wait->most);
    gps_text_strs(&text, " for ", gps_wait_whom(wait->whom));
    wait_add_name(&text, wait);
    gps_log_notice(GPS_LEVEL_WARNING, text.bytes);
}

void gps_wait_turn(struct gps_wait *wait, uint64_t nanos) {
    if (!wait->said && gps_clock_monotonic() - wait->began >= GPS_SECOND) {
        wait->said = true;
        wait_publish(wait);
        wait_say(wait);
    }
    gps_watch_wait(&wait->watch, nanos);
}

void gps_wait_end(struct gps_wait *wait) {
    gps_references_end(wait->slot);
    gps_watch_close(&wait->watch);
}
