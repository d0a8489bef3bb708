/*
 * doctor_hip.c - checks that AMD's runtime answers, and tells which one it is.
 *
 * What the loader finds first counts, the newest version before older ones, as a program that is
 * linked with it has it; then ROCm's own place.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/printable.h"
#include "doctor.h"

#define HIP_GPUS 16

enum { OLDEST = 506, NEWEST = 7, NO_DEVICE = 100, INVALID_DEVICE = 101 };

enum step { STEP_LOAD, STEP_COUNT, STEP_DONE };

struct answer {
    enum step step; /* the step that `code` or `error` belongs to */
    int code;       /* hipError_t */
    int version;
    int count;
    char error[512]; /* of dlopen */
    char path[512];
    struct {
        char name[96];
        uint8_t uuid[GPS_UUID_BYTES];
    } gpus[HIP_GPUS];
};

_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is one write of doctor_ask");

struct runtime_calls {
    int (*version)(int *);
    int (*count)(int *);
    int (*name)(char *, int, int);
    int (*uuid)(uint8_t *, int);
};

/* --- in the child of doctor_ask --- */

static void *load(void) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "/opt/rocm/lib/libamdhip64.so", "libamdhip64.so"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find(void *library, struct runtime_calls *calls, struct answer *answer) {
    Dl_info place;
    *(void **)&calls->version = dlsym(library, "hipRuntimeGetVersion");
    *(void **)&calls->count = dlsym(library, "hipGetDeviceCount");
    *(void **)&calls->name = dlsym(library, "hipDeviceGetName");
    *(void **)&calls->uuid = dlsym(library, "hipDeviceGetUuid");
    if (!calls->version || !calls->count || !calls->name || !calls->uuid) {
        snprintf(answer->error, sizeof(answer->error), "functions are missing in libamdhip64.so");
        return false;
    }
    if (dladdr(*(void **)&calls->version, &place))
        snprintf(answer->path, sizeof(answer->path), "%s", place.dli_fname);
    return true;
}

static void ask(void *out) {
    struct answer *answer = out;
    struct runtime_calls calls = {0};
    void *library = load();
    answer->step = STEP_LOAD;
    if (!library)
        snprintf(answer->error, sizeof(answer->error), "%s", dlerror());
    if (!library || !find(library, &calls, answer))
        return;
    answer->step = STEP_COUNT;
    calls.version(&answer->version);
    answer->code = calls.count(&answer->count);
    if (answer->code != 0)
        return;
    for (int i = 0; i < answer->count && i < HIP_GPUS; i++) {
        calls.name(answer->gpus[i].name, sizeof(answer->gpus[i].name) - 1, i);
        calls.uuid(answer->gpus[i].uuid, i);
    }
    answer->step = STEP_DONE;
}

/* --- in the parent --- */

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

static void tell_of_trial(struct doctor *doctor, const char *name, int version) {
    if (strcmp(name, "Simulated GPU") == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "driver", "it is simulated");
        return;
    }
    diagnosis_add(doctor, DOCTOR_WARN, "driver",
                  "gpushare was run on a simulated runtime of HIP, and not on an AMD card");
    diagnosis_remedy(doctor, "docs/hip.md says what to run first, and what to send");
    doctor_ipc(doctor, version / 100000);
}

static void judge_gpus(struct doctor *doctor, const struct answer *answer) {
    diagnosis_add(doctor, DOCTOR_OK, "driver", "%s, HIP %d.%d, %d GPU%s", answer->path,
                  answer->version / 10000000, answer->version / 100000 % 100, answer->count,
                  answer->count == 1 ? "" : "s");
    judge_version(doctor, answer->version);
    for (int i = 0; i < answer->count && i < HIP_GPUS; i++)
        diagnosis_add(doctor, DOCTOR_OK, "gpu", "%d: %s, %s", i, answer->gpus[i].name,
                      printable_uuid(answer->gpus[i].uuid).text);
    tell_of_trial(doctor, answer->gpus[0].name, answer->version);
}

static void judge(struct doctor *doctor, const struct answer *answer) {
    if (answer->step == STEP_LOAD) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no HIP: %s", answer->error);
        diagnosis_remedy(doctor, "install ROCm, or name its directory in LD_LIBRARY_PATH");
    } else if (answer->step == STEP_COUNT || answer->count == 0) {
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

void doctor_hip(struct doctor *doctor) {
    struct answer answer = {0};
    if (doctor->runtime != RUNTIME_HIP)
        return;
    if (doctor_ask(doctor, ask, &answer, sizeof(answer)))
        judge(doctor, &answer);
    else
        diagnosis_remedy(doctor, "see rocminfo and dmesg; load amdgpu anew, or reboot");
}
