/* rdma.c - see rdma.h. */
#include "rdma.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "directory/file.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/procfs.h"

#define INTERVAL (GPS_SECOND / 10)
#define REST     50 /* times what the last look took */

static struct {
    _Atomic bool busy, found;
    _Atomic uint64_t next; /* not before this */
    char device[GPS_RDMA_NAME];
} state;
GPS_FORGOTTEN(state);

bool gps_rdma_is_device(const char *path) {
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
    if (!gps_rdma_is_device(path))
        return false;
    memcpy(state.device, path, sizeof(path));
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
    if (state.found || begun < state.next || atomic_exchange(&state.busy, true))
        return;
    state.found = is_any_open();
    const uint64_t took = gps_clock_monotonic() - begun;
    state.next = begun + took + (REST * took > INTERVAL ? REST * took : INTERVAL);
    state.busy = false;
}

const char *gps_rdma_device(void) {
    return state.found ? state.device : NULL;
}
