/* background.c - see background.h. */
#include "background.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "process/membership.h"
#include "thread.h"
#include "watch.h"

static bool is_over(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    const bool over = task->stop || (task->left && !task->left());
    if (over)
        task->running = false;
    return over;
}

static void *run(void *arg) {
    struct gps_background *task = arg;
    struct gps_watch watch;
    prctl(PR_SET_NAME, task->name);
    gps_watch_open(&watch, gps_membership_store(), task->watched);
    while (!is_over(task)) {
        gps_watch_wait(&watch, task->turn());
        usleep(5000); /* many changes make one turn */
    }
    gps_watch_close(&watch);
    return NULL;
}

int gps_background_start(struct gps_background *task) {
    GPS_LOCKED(&task->lock);
    if (!task->running && !task->stop)
        task->running = gps_thread_start(run, task);
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
