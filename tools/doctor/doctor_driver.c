/*
 * doctor_driver.c - checks that a driver answers, and that its GPUs can be shared.
 *
 * The driver is asked in a child, because a driver in a bad state can crash or hang its caller,
 * even beyond a signal's reach. So the child has none of our descriptors but one pipe. After the
 * time-out it is killed and, if it does not die, left behind.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/printable.h"
#include "config/config.h"
#include "doctor.h"
#include "util/clock.h"

#define DRIVER_GPUS            16
#define COMPUTE_MODE_ATTRIBUTE 20 /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */

enum step { STEP_LOAD, STEP_INIT, STEP_COUNT, STEP_DONE };

enum compute_mode { COMPUTE_DEFAULT = 0, COMPUTE_PROHIBITED = 2, COMPUTE_EXCLUSIVE = 3 };

struct gpu {
    char name[96];
    uint8_t uuid[GPS_UUID_BYTES];
    int compute_mode;
};

/* The child's answer: one write that the pipe keeps whole. */
struct answer {
    enum step step; /* the step that `code` or `error` belongs to */
    int code;       /* CUresult */
    int version;
    int count;
    char error[512]; /* of dlopen */
    struct gpu gpus[DRIVER_GPUS];
};

_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is one write");

/* cuda.h is not needed for six functions whose ABI is fixed. */
struct driver {
    int (*init)(unsigned);
    int (*version)(int *);
    int (*count)(int *);
    int (*name)(char *, int, int);
    int (*uuid)(uint8_t *, int);
    int (*attribute)(int *, int, int);
};

/* --- in the child --- */

static bool load(struct driver *driver, struct answer *answer) {
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!libcuda) {
        snprintf(answer->error, sizeof(answer->error), "%s", dlerror());
        return false;
    }
    *(void **)&driver->init = dlsym(libcuda, "cuInit");
    *(void **)&driver->version = dlsym(libcuda, "cuDriverGetVersion");
    *(void **)&driver->count = dlsym(libcuda, "cuDeviceGetCount");
    *(void **)&driver->name = dlsym(libcuda, "cuDeviceGetName");
    *(void **)&driver->uuid = dlsym(libcuda, "cuDeviceGetUuid_v2");
    if (!driver->uuid)
        *(void **)&driver->uuid = dlsym(libcuda, "cuDeviceGetUuid");
    *(void **)&driver->attribute = dlsym(libcuda, "cuDeviceGetAttribute");
    if (driver->init && driver->version && driver->count && driver->name && driver->uuid &&
        driver->attribute)
        return true;
    snprintf(answer->error, sizeof(answer->error), "functions are missing in it");
    return false;
}

static void ask(struct answer *answer) {
    struct driver driver;
    if (!load(&driver, answer))
        return;
    answer->step = STEP_INIT;
    answer->code = driver.init(0);
    driver.version(&answer->version);
    if (answer->code != 0)
        return;
    answer->step = STEP_COUNT;
    answer->code = driver.count(&answer->count);
    if (answer->code != 0)
        return;
    for (int i = 0; i < answer->count && i < DRIVER_GPUS; i++) {
        struct gpu *gpu = &answer->gpus[i];
        driver.name(gpu->name, sizeof(gpu->name) - 1, i);
        driver.uuid(gpu->uuid, i);
        driver.attribute(&gpu->compute_mode, COMPUTE_MODE_ATTRIBUTE, i);
    }
    answer->step = STEP_DONE;
}

static void run_child(int out) {
    struct answer answer = {.step = STEP_LOAD};
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    setenv("GPUSHARE_MODE", "off", 1); /* we may be preloaded ourselves */
    ask(&answer);
    ssize_t written = write(out, &answer, sizeof(answer));
    _exit(written == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* --- in the parent --- */

/* False: no answer came. *late: none came within the time-out. */
static bool await_answer(int from, struct answer *answer, uint64_t timeout, bool *late) {
    struct pollfd ready = {.fd = from, .events = POLLIN};
    *late = poll(&ready, 1, (int)(timeout / 1000000) + 1) == 0;
    return !*late && read(from, answer, sizeof(*answer)) == sizeof(*answer);
}

/* The child's wait status; -1 when it does not even die of SIGKILL. */
static int reap(pid_t child, bool kill_it) {
    int status;
    if (kill_it)
        kill(child, SIGKILL);
    for (int i = 0; i < 100; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        usleep(10000);
    }
    return -1;
}

static const struct explanation {
    int code;
    const char *meaning, *remedy;
} explanations[] = {
    {2, "out of memory", "end programs that fill the GPU or this machine's memory"},
    {34, "a stub library",
     "libcuda.so.1 is the stub that is only for linking: take its directory out of "
     "LD_LIBRARY_PATH"},
    {46, "the GPU is unavailable", "it is in use in exclusive mode, or lost: see nvidia-smi"},
    {100, "no GPU",
     "check nvidia-smi and CUDA_VISIBLE_DEVICES; in a container start it with --gpus all (podman: "
     "--device nvidia.com/gpu=all)"},
    {101, "no such GPU", "check CUDA_VISIBLE_DEVICES"},
    {304, "an operating system call failed",
     "/proc may not belong to this pid namespace (mount it anew), or /dev/nvidia* are missing"},
    {802, "the system is not ready", "start nvidia-fabricmanager, or wait until it is up"},
    {803, "driver and library versions differ",
     "the kernel module is of another version than libcuda.so.1: reboot, or reload the module; in "
     "a "
     "container, mount the host's libcuda"},
    {804, "forward compatibility is not supported on this GPU",
     "take the cuda-compat directory out of LD_LIBRARY_PATH"},
    {999, "unknown error", "load nvidia_uvm (nvidia-modprobe -u), see dmesg for Xid, or reboot"},
};

static void explain(struct doctor *doctor, const char *call, int code) {
    const struct explanation *known = NULL;
    for (size_t i = 0; i < sizeof(explanations) / sizeof(explanations[0]); i++)
        if (explanations[i].code == code)
            known = &explanations[i];
    diagnosis_add(doctor, DOCTOR_FAIL, "driver", "%s gives %d: %s", call, code,
                  known ? known->meaning : "see CUresult in the CUDA driver's documentation");
    diagnosis_remedy(doctor, "%s", known ? known->remedy : "see nvidia-smi and dmesg");
}

static void judge_gpu(struct doctor *doctor, int index, const struct gpu *gpu) {
    const bool slice = strstr(gpu->name, "MIG");
    const char *trouble = slice                                     ? ", a MIG instance"
                          : gpu->compute_mode == COMPUTE_EXCLUSIVE  ? ", exclusive to one process"
                          : gpu->compute_mode == COMPUTE_PROHIBITED ? ", closed to all processes"
                                                                    : "";
    enum doctor_verdict verdict = trouble[0] == 0 || slice ? DOCTOR_OK : DOCTOR_FAIL;
    diagnosis_add(doctor, slice ? DOCTOR_WARN : verdict, "gpu", "%d: %s, %s%s", index, gpu->name,
                  printable_uuid(gpu->uuid).text, trouble);
    if (slice)
        diagnosis_remedy(doctor, "memory can only be shared within one MIG instance");
    else if (verdict == DOCTOR_FAIL)
        diagnosis_remedy(doctor,
                         "two processes must use it at once: nvidia-smi -c DEFAULT (or MPS)");
}

static void judge(struct doctor *doctor, const struct answer *answer) {
    if (answer->step == STEP_LOAD) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no driver: %s", answer->error);
        diagnosis_remedy(doctor,
                         "install NVIDIA's driver; in a container, start it with the NVIDIA "
                         "container toolkit (docker: --gpus all, podman: --device "
                         "nvidia.com/gpu=all)");
    } else if (answer->step == STEP_INIT) {
        explain(doctor, "cuInit", answer->code);
    } else if (answer->step == STEP_COUNT || answer->count == 0) {
        explain(doctor, "cuDeviceGetCount", answer->count == 0 ? 100 : answer->code);
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "driver", "libcuda.so.1 for CUDA %d.%d, %d GPU%s",
                      answer->version / 1000, answer->version % 1000 / 10, answer->count,
                      answer->count == 1 ? "" : "s");
        for (int i = 0; i < answer->count && i < DRIVER_GPUS; i++)
            judge_gpu(doctor, i, &answer->gpus[i]);
    }
}

static void judge_silence(struct doctor *doctor, bool late, int status) {
    if (late)
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "the driver did not answer within %s%s",
                      printable_duration(doctor->timeout).text,
                      status == -1 ? ", and the process that asked cannot even be killed" : "");
    else if (status != -1 && WIFSIGNALED(status))
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver dies of signal %d", WTERMSIG(status));
    else
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver ends silently");
    diagnosis_remedy(doctor,
                     "see nvidia-smi, and dmesg for Xid errors; reload the driver or reboot");
}

void doctor_driver(struct doctor *doctor) {
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no process could be started to ask it");
        return;
    }
    if (child == 0)
        run_child(ends[1]);
    close(ends[1]);
    struct answer answer;
    bool late;
    const bool answered = await_answer(ends[0], &answer, doctor->timeout, &late);
    close(ends[0]);
    int status = reap(child, !answered);
    if (answered)
        judge(doctor, &answer);
    else
        judge_silence(doctor, late, status);
}
