#include "not_merging.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/orders.h"
#include "directory/record.h"
#include "driver/driver_ops.h"
#include "log/log.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/procfs.h"
#include "util/text.h"

#define INTERVAL (GPS_SECOND / 10)
#define REST     50 /* times the last look's duration */

/* --- `gpushare merge off`, or a driver call that is unknown or not seen --- */

static struct {
    _Atomic bool on;
    uint64_t next; /* not before this */
    _Atomic bool ending, ended;
    enum gps_not_merging why;
    char name[64];
} paused;
GPS_FORGOTTEN(paused);

void gps_pause_look(void) {
    const struct gps_store *store = gps_membership_store();
    const uint64_t now = gps_clock_monotonic();
    if (!store || now < paused.next)
        return;
    paused.next = now + INTERVAL;
    paused.on = gps_paused_get(store, gps_process_self());
}

bool gps_pause_is_on(void) {
    return atomic_load_explicit(&paused.on, memory_order_relaxed) || gps_pause_name();
}

void gps_pause_for_good(const char *name, enum gps_not_merging why) {
    if (atomic_exchange(&paused.ending, true))
        return;
    struct gps_text text = GPS_TEXT(paused.name);
    gps_text_str(&text, name);
    paused.why = why;
    paused.ended = true;
}

const char *gps_pause_name(void) {
    return atomic_load_explicit(&paused.ended, memory_order_acquire) ? paused.name : NULL;
}

enum gps_not_merging gps_pause_why(void) {
    return paused.why;
}

/* --- devices by which other hardware reaches GPU memory --- */

static struct {
    _Atomic bool busy, found;
    _Atomic uint64_t next; /* not before this */
    char device[GPS_RDMA_NAME];
} rdma;
GPS_FORGOTTEN(rdma);

static bool is_rdma_device(const char *path) {
    static const char *const begins[] = {"/dev/infiniband/uverbs", "/dev/nvidia-fs"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (strncmp(path, begins[i], strlen(begins[i])) == 0)
            return true;
    return strcmp(path, "/dev/gdrdrv") == 0;
}

static bool is_device(const struct gps_dir *dir, const char *name) {
    char path[GPS_RDMA_NAME];
    const ssize_t length = readlinkat(dir->fd, name, path, sizeof(path) - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    if (!is_rdma_device(path))
        return false;
    memcpy(rdma.device, path, sizeof(path));
    return true;
}

static bool is_any_open(void) {
    struct gps_dir dir;
    const char *name;
    bool found = false;
    char path[GPS_PROCFS_PATH];
    gps_procfs_path("fd", path);
    gps_dir_open_path(&dir, path);
    while (!found && (name = gps_dir_next(&dir)))
        found = is_device(&dir, name);
    gps_dir_close(&dir);
    return found;
}

void gps_rdma_look(void) {
    const uint64_t begun = gps_clock_monotonic();
    if (rdma.found || begun < rdma.next || atomic_exchange(&rdma.busy, true))
        return;
    rdma.found = is_any_open();
    const uint64_t took = gps_clock_monotonic() - begun;
    rdma.next = begun + took + (REST * took > INTERVAL ? REST * took : INTERVAL);
    rdma.busy = false;
}

const char *gps_rdma_device(void) {
    return rdma.found ? rdma.device : NULL;
}

/* --- why nothing is merged --- */

static struct {
    _Atomic unsigned why;
    _Atomic bool busy; /* a thread publishes it */
    unsigned slot;     /* where it is published, if `published` */
    bool published;
    unsigned said; /* a bit each */
} state;
GPS_FORGOTTEN(state);

static void not_merging_publish(enum gps_not_merging why) {
    static const struct gps_id none;
    if (state.published)
        gps_references_end(state.slot);
    state.published = why && gps_references_begin(&none, GPS_VIA_NOT_MERGING, &state.slot) == 0 &&
                      gps_references_commit(state.slot, &none, GPS_VIA_NOT_MERGING, why, 0, 0) == 0;
    if (why && !state.published)
        gps_references_end(state.slot);
}

/* A reason that passes by itself is told at level info alone. */
static void not_merging_say(enum gps_not_merging why) {
    const bool passes = why == GPS_NOT_MERGING_BUSY || why == GPS_NOT_MERGING_CAPTURE ||
                        why == GPS_NOT_MERGING_PAUSED;
    char message[256];
    struct gps_text text = GPS_TEXT(message);
    if (!why || state.said & 1u << why)
        return;
    state.said |= 1u << why;
    gps_text_strs(&text, "nothing is merged: ", gps_not_merging_why(why));
    if (why == GPS_NOT_MERGING_UNKNOWN || why == GPS_NOT_MERGING_BYPASSED)
        gps_text_strs(&text, " (", gps_pause_name(), ")");
    if (why == GPS_NOT_MERGING_RDMA)
        gps_text_strs(&text, " (", gps_rdma_device(),
                      "); blocks that were merged before it was opened stay merged");
    if (why == GPS_NOT_MERGING_MPS)
        gps_text_strs(&text, ". A kernel that writes into merged memory ends with error 700, and "
                             "under MPS so does every other program on that GPU");
    gps_log_notice(passes ? GPS_LEVEL_INFO : GPS_LEVEL_WARNING, message);
}

/* A thread that comes while another publishes returns: its next call says it again. */
void gps_not_merging_set(enum gps_not_merging why) {
    if (why == state.why || atomic_exchange(&state.busy, true))
        return;
    state.why = why;
    not_merging_say(why);
    not_merging_publish(why);
    state.busy = false;
}

enum gps_not_merging gps_not_merging_get(void) {
    return (enum gps_not_merging)state.why;
}

/* --- MPS --- */

static _Atomic bool forbidden;
GPS_FORGOTTEN(forbidden);

bool gps_mps_forbids(const struct gps_rule *rule, int device) {
    const bool forbids = rule->mps == GPS_MPS_OFF && gps_ops->by_mps(device);
    if (forbids)
        forbidden = true;
    return forbids;
}

bool gps_mps_has_forbidden(void) {
    return forbidden;
}
