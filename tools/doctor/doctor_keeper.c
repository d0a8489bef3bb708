/*
 * doctor_keeper.c - is there a keeper for regions of backing = vmm, or can one be started.
 */
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

#define PATIENCE (UINT64_C(2) * 1000000000)

/* True when there is no more to say. */
static bool check_living(struct doctor *doctor) {
    struct view_place place;
    struct gps_store store;
    struct gps_owner self, keeper;
    uint64_t regions;
    view_place_get(&place);
    if (view_store(&place, &store) != 0)
        return false;
    gps_owner_self(&self);
    int error = gps_keeper_ping(&store, &self, PATIENCE, &keeper, &regions);
    if (error == 0) {
        doctor_say(doctor, DOCTOR_OK, "keeper", "%s, pid %u, keeps %" PRIu64 " region%s",
                   keeper.command, keeper.pid, regions, regions == 1 ? "" : "s");
    } else if (error != -ENOENT) {
        doctor_say(doctor, DOCTOR_FAIL, "keeper", "%s/keeper does not answer: %s", store.path,
                   strerror(-error));
        doctor_remedy(doctor, "end that process; programs start another one");
    }
    return error != -ENOENT;
}

void doctor_keeper(struct doctor *doctor) {
    char path[PATH_MAX];
    if (check_living(doctor))
        return;
    int error = gps_spawn_program(path, sizeof(path));
    if (error == 0) {
        doctor_say(doctor, DOCTOR_OK, "keeper", "none now; programs that need one start %s", path);
        return;
    }
    doctor_say(doctor, DOCTOR_WARN, "keeper",
               "programs cannot start one, so regions of backing = vmm stay private: %s",
               strerror(-error));
    doctor_remedy(doctor, "set GPUSHARE_KEEPER to the path of this tool, or install it in ../bin "
                          "from the library's directory");
}
