/* doctor_keeper.c - checks that a keeper for regions of backing = vmm runs, or can be started. */

#include "cli/tool.h"
#include "directory/lease.h"
#include "directory/processes.h"
#include "doctor.h"
#include "keeper/keeper_client.h"
#include "run/preload.h"
#include "util/clock.h"

#define TIMEOUT (2 * GPS_SECOND)

struct pids {
    uint64_t serves, stands_by; /* 0: not known */
};

static bool note_pids(void *found, const struct gps_proc *proc) {
    for (unsigned i = 0; proc->alive && i < proc->slot_count; i++)
        if (proc->slots[i].via == GPS_VIA_KEEPER)
            *(struct pids *)found = (struct pids){proc->slots[i].address, proc->slots[i].reserved};
    return true;
}

/* False: no keeper runs. */
static bool check_running(struct doctor *doctor) {
    if (doctor->store_status != 0)
        return false;
    struct gps_owner self, keeper;
    struct pids pids = {0};
    uint64_t regions;
    gps_owner_self(&self);
    const int status = gps_keeper_ping(&doctor->store, &self, TIMEOUT, &keeper, &regions);
    if (status == -ENOENT)
        return false;
    gps_proc_each(&doctor->store, note_pids, &pids);
    TOOL_TEMP char *other = pids.stands_by
                                ? tool_format("; pid %" PRIu64 " stands by", pids.stands_by)
                                : tool_copy("; none stands by");
    if (status == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "keeper", "%s, pid %u, keeps %" PRIu64 " region%s%s",
                      keeper.command, keeper.pid, regions, regions == 1 ? "" : "s", other);
        return true;
    }
    diagnosis_add(doctor, DOCTOR_FAIL, "keeper", "%s/keeper (pid %" PRIu64 ") does not answer: %s",
                  doctor->store.path, pids.serves, strerror(-status));
    diagnosis_remedy(doctor,
                     "let that process go on if it is stopped (kill -CONT), or kill it: its "
                     "stand-by goes on, or programs start another one");
    return true;
}

void doctor_keeper(struct doctor *doctor) {
    char path[PATH_MAX], library[PATH_MAX];
    if (doctor->runtime == RUNTIME_HIP || check_running(doctor)) /* HIP has no memory for one */
        return;
    if (!preload_library(RUNTIME_CUDA, library))
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
