/* doctor_keeper.c - checks that a keeper for regions of backing = vmm runs, or can be started. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "directory/lease.h"
#include "directory/view.h"
#include "doctor.h"
#include "keeper/keeper_client.h"
#include "keeper/keeper_spawn.h"
#include "run/preload.h"
#include "util/clock.h"

#define TIMEOUT (2 * GPS_SECOND)

/* False: no keeper runs. */
static bool check_running(struct doctor *doctor) {
    struct view_place place;
    struct gps_store store;
    view_place_get(&place);
    if (view_store(&place, false, &store) != 0)
        return false;
    struct gps_owner self, keeper;
    uint64_t regions;
    gps_owner_self(&self);
    int status = gps_keeper_ping(&store, &self, TIMEOUT, &keeper, &regions);
    if (status == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "keeper", "%s, pid %u, keeps %" PRIu64 " region%s",
                      keeper.command, keeper.pid, regions, regions == 1 ? "" : "s");
    } else if (status != -ENOENT) {
        diagnosis_add(doctor, DOCTOR_FAIL, "keeper", "%s/keeper does not answer: %s", store.path,
                      strerror(-status));
        diagnosis_remedy(doctor, "end that process; programs start another one");
    }
    return status != -ENOENT;
}

void doctor_keeper(struct doctor *doctor) {
    char path[PATH_MAX], library[PATH_MAX];
    if (check_running(doctor))
        return;
    if (!preload_library(library))
        library[0] = 0;
    int status = gps_spawn_program(library, path, sizeof(path));
    if (status == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "keeper", "none now; programs that need one start %s",
                      path);
        return;
    }
    diagnosis_add(doctor, DOCTOR_WARN, "keeper",
                  "programs cannot start one, so regions of backing = vmm stay private: %s",
                  strerror(-status));
    diagnosis_remedy(doctor,
                     "set GPUSHARE_KEEPER to the path of this tool, or install it in the library's "
                     "directory, or in ../bin from there");
}
