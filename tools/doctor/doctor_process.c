/* doctor_process.c - says which runtime a process uses, and whether it has the library for it. */
#include <stdbool.h>
#include <stdlib.h>

#include "cli/tool.h"
#include "doctor.h"
#include "run/descendants.h"
#include "run/loaded.h"
#include "suspend/target.h"

static void judge_library(struct doctor *doctor, const char *name, const struct loaded *loaded,
                          enum runtime uses) {
    const char *const driver = loaded->drivers[uses], *const library = vendor_library(uses);
    const enum runtime other = uses == RUNTIME_HIP ? RUNTIME_CUDA : RUNTIME_HIP;
    const bool good = loaded->libraries[uses];
    diagnosis_add(doctor, good ? DOCTOR_OK : DOCTOR_FAIL, "process", "%s uses %s (%s), %s %s%s%s",
                  name, vendor_name(uses), driver, good ? "with" : "without", library,
                  loaded->libraries[other] ? ", and has " : "",
                  loaded->libraries[other] ? vendor_library(other) : "");
    if (!good)
        diagnosis_remedy(doctor,
                         "start it by: gpushare run --runtime=%s -- CMD; what starts it must keep "
                         "LD_PRELOAD",
                         vendor_option(uses));
}

static void judge(struct doctor *doctor, const char *name, const struct loaded *loaded) {
    const bool cuda = loaded->drivers[RUNTIME_CUDA], hip = loaded->drivers[RUNTIME_HIP];
    if (cuda && hip) {
        diagnosis_add(doctor, DOCTOR_WARN, "process",
                      "%s has loaded CUDA's driver and HIP's runtime", name);
        diagnosis_remedy(doctor, "the library is for one of them: gpushare run --runtime=cuda|hip");
    } else if (!cuda && !hip) {
        diagnosis_add(doctor, DOCTOR_WARN, "process",
                      "%s has loaded neither CUDA's driver nor HIP's runtime by now", name);
    } else {
        judge_library(doctor, name, loaded, hip ? RUNTIME_HIP : RUNTIME_CUDA);
    }
}

/* Whether `gpushare suspend` could suspend it, as the process itself says at this moment. */
static void judge_suspension(struct doctor *doctor, const char *name) {
    TOOL_TEMP char *pid = tool_format("%u", doctor->pid);
    TOOL_TEMP char *why = target_obstacle(pid);
    if (why && *why)
        diagnosis_add(doctor, DOCTOR_OK, "suspend", "%s cannot be suspended now: %s", name, why);
    else if (why)
        diagnosis_add(doctor, DOCTOR_OK, "suspend", "%s can be suspended", name);
    else
        diagnosis_add(doctor, DOCTOR_OK, "suspend",
                      "%s cannot be suspended: it was not started with suspend = on", name);
}

void doctor_process(struct doctor *doctor) {
    struct loaded loaded;
    if (!doctor->pid)
        return;
    if (!loaded_read(doctor->pid, &loaded)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "process", "%u: there is none, or it is not yours",
                      doctor->pid);
        return;
    }
    TOOL_TEMP char *name = descendants_name(doctor->pid);
    judge(doctor, name, &loaded);
    judge_suspension(doctor, name);
    loaded_free(&loaded);
}
