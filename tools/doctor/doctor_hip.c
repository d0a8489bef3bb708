/* doctor_hip.c - tells which runtime of AMD's has answered, and judges it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* --- which of its two ways of IPC the runtime takes, and what that asks for --- */

/* Legacy handles have a key in the kernel, and no socket. With dma-buf an importer asks a thread of
 * the exporter's by an abstract socket, which a network namespace has for itself. Which releases
 * take which is known in part (docs/hip.md); what is not known is said to be so. */

#define MODE "HSA_ENABLE_IPC_MODE_LEGACY"

enum { ALL_LEGACY = 602 /* the newest version whose sources were read from before mid-2025 */ };

/* False: by dma-buf, or unknown. 1 is in images of inference servers (rocm-systems#2209). */
static bool by_legacy_handles(struct doctor *doctor, int version) {
    const char *mode = getenv(MODE);
    const bool legacy = version <= ALL_LEGACY;
    if (!mode) {
        diagnosis_add(doctor, DOCTOR_OK, "ipc", "%s",
                      legacy ? "by legacy handles, the default of this version"
                             : "by legacy handles or by dma-buf: which is this version's default "
                               "is not known (legacy until about mid-2025, dma-buf after it; it "
                               "has changed three times); " MODE " chooses");
        return legacy;
    }
    if (strcmp(mode, "0") == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "ipc",
                      MODE "=0 chooses dma-buf, where the version has it");
        return false;
    }
    if (strcmp(mode, "1") != 0) {
        diagnosis_add(doctor, DOCTOR_WARN, "ipc",
                      MODE "=%s: what the runtime makes of it is not known", mode);
        diagnosis_remedy(doctor, "set it to 1 (legacy handles) or 0 (dma-buf), or unset it");
        return false;
    }
    diagnosis_add(doctor, legacy ? DOCTOR_OK : DOCTOR_WARN, "ipc",
                  MODE "=1 chooses legacy handles");
    if (!legacy)
        diagnosis_remedy(doctor, "with some versions exports fail then (rocm-systems#2209; which "
                                 "ones is not known): unset it if hipIpcGetMemHandle answers 1");
    return true;
}

/* "net:[4026531840]" */
static void ipc_namespace_name(const char *kind, char name[64]) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    const ssize_t length = readlink(path, name, 63);
    name[length > 0 ? length : 0] = '\0';
}

/* The runtime compares pids as numbers, in either way. */
static void tell_of_namespaces(struct doctor *doctor, bool legacy) {
    char pid[64], net[64];
    ipc_namespace_name("pid", pid);
    ipc_namespace_name("net", net);
    const bool asks = !legacy && doctor_in_container();
    diagnosis_add(doctor, asks ? DOCTOR_WARN : DOCTOR_OK, "ipc", "%s, %s: %s", pid, net,
                  legacy
                      ? "network namespaces do not matter with legacy handles; the runtime refuses "
                        "an exporter with the importer's pid in another pid namespace (201)"
                      : "with dma-buf, exporter and importer need one network namespace, or opens "
                        "fail with 17 after 10 s; the runtime refuses an exporter with the "
                        "importer's pid in another pid namespace (201)");
    if (asks)
        diagnosis_remedy(doctor, "start the containers with --ipc=host --pid=host --network=host; "
                                 "some needed all three (rocm-aic#88)");
}

/* On AMD's cards. The version is 100 * major + minor. */
static void judge_ipc(struct doctor *doctor, int version) {
    tell_of_namespaces(doctor, by_legacy_handles(doctor, version));
    diagnosis_add(doctor, DOCTOR_WARN, "ipc",
                  "handles of allocations over 2 GiB hang the importer with some versions "
                  "(ROCm issue 1999, rocm-systems#3211); which ones is not known");
    diagnosis_remedy(doctor, "share allocations of at most 2 GiB, or try a larger one first");
    /* the runtime's number is not the release's beyond the minor one */
    if (version != 702)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "ipc",
                  "ROCm 7.2.0 to 7.2.4 lose 256 MB in each cycle of export and import");
    diagnosis_remedy(doctor, "open a handle once and keep it, or use another release");
}

/* --- what has answered --- */

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
    judge_ipc(doctor, answer->version / 100000);
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
