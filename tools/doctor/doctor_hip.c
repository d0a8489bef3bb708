/* doctor_hip.c - tells which runtime of AMD's has answered, and judges it. */
#include <stdio.h>
#include <string.h>

#include "cli/printable.h"
#include "doctor.h"

enum { OLDEST = 506, NEWEST = 7, NO_DEVICE = 100, INVALID_DEVICE = 101 };

static void judge_version(struct doctor *doctor, int version) {
    const int major = version / 10000000, minor = version / 100000 % 100;
    if (version / 100000 < OLDEST)
        diagnosis_add(doctor, DOCTOR_WARN, "driver",
                      "HIP %d.%d: gpushare knows the handles of versions from 5.6 on", major,
                      minor);
    else if (major > NEWEST)
        diagnosis_add(doctor, DOCTOR_WARN, "driver",
                      "HIP %d.%d is newer than what gpushare was made after: 5.6 to 7", major,
                      minor);
    else
        return;
    diagnosis_remedy(doctor, "use ROCm of a version between");
}

static void judge_gpus(struct doctor *doctor, const struct driver_answer *answer) {
    diagnosis_add(doctor, DOCTOR_OK, "driver", "%s, HIP %d.%d, %d GPU%s", answer->path,
                  answer->version / 10000000, answer->version / 100000 % 100, answer->count,
                  answer->count == 1 ? "" : "s");
    judge_version(doctor, answer->version);
    for (int i = 0; i < answer->count && i < DRIVER_GPUS; i++)
        diagnosis_add(doctor, DOCTOR_OK, "gpu", "%d: %s, %s", i, answer->gpus[i].name,
                      printable_uuid(answer->gpus[i].uuid).text);
    if (strcmp(answer->gpus[0].name, "Simulated GPU") == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "driver", "it is simulated");
        return;
    }
    diagnosis_add(doctor, DOCTOR_WARN, "driver",
                  "gpushare was run on a simulated runtime of HIP, and not on an AMD card");
    diagnosis_remedy(doctor, "docs/hip.md says what to run first, and what to send");
    doctor_ipc(doctor, answer->version / 100000);
}

void doctor_hip(struct doctor *doctor, const struct driver_answer *answer) {
    if (answer->step == DRIVER_LOAD) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no HIP: %s", answer->error);
        diagnosis_remedy(doctor, "install ROCm, or name its directory in LD_LIBRARY_PATH");
    } else if (answer->step == DRIVER_COUNT || answer->count == 0) {
        const int code = answer->code ? answer->code : NO_DEVICE;
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "%s: hipGetDeviceCount gives %d: %s",
                      answer->path, code,
                      code == NO_DEVICE        ? "no GPU"
                      : code == INVALID_DEVICE ? "the runtime could not start"
                                               : "see hipError_t in HIP's documentation");
        diagnosis_remedy(doctor,
                         "check rocminfo, HIP_VISIBLE_DEVICES, and that you may open /dev/kfd and "
                         "/dev/dri (docker: --device /dev/kfd --device /dev/dri)");
    } else {
        judge_gpus(doctor, answer);
    }
}
