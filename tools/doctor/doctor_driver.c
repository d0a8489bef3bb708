/*
 * doctor_driver.c - checks CUDA's driver, or HIP's runtime, and that CUDA's GPUs can be shared.
 */

#include "cli/printable.h"
#include "cli/tool.h"
#include "doctor.h"
#include "run/preload.h"

enum compute_mode { COMPUTE_DEFAULT = 0, COMPUTE_PROHIBITED = 2, COMPUTE_EXCLUSIVE = 3 };

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

static void driver_code_explain(struct doctor *doctor, const char *call, int code) {
    const struct explanation *known = NULL;
    for (size_t i = 0; i < sizeof(explanations) / sizeof(explanations[0]); i++)
        if (explanations[i].code == code)
            known = &explanations[i];
    diagnosis_add(doctor, DOCTOR_FAIL, "driver", "%s gives %d: %s", call, code,
                  known ? known->meaning : "see CUresult in the CUDA driver's documentation");
    diagnosis_remedy(doctor, "%s", known ? known->remedy : "see nvidia-smi and dmesg");
}

static void judge_gpu(struct doctor *doctor, int index, const struct driver_gpu *gpu) {
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

static void judge_cuda(struct doctor *doctor, const struct driver_answer *answer) {
    if (answer->step == DRIVER_LOAD) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no driver: %s", answer->error);
        TOOL_TEMP char *simulator = preload_simulator();
        diagnosis_remedy(doctor,
                         "install NVIDIA's driver; in a container, start it with the NVIDIA "
                         "container toolkit (docker: --gpus all, podman: --device "
                         "nvidia.com/gpu=all)%s%s",
                         simulator ? "; to try it without a GPU: export LD_LIBRARY_PATH=" : "",
                         tool_or(simulator, ""));
    } else if (answer->step == DRIVER_INIT) {
        driver_code_explain(doctor, "cuInit", answer->code);
    } else if (answer->step == DRIVER_COUNT || answer->count == 0) {
        driver_code_explain(doctor, "cuDeviceGetCount", answer->count == 0 ? 100 : answer->code);
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "driver", "libcuda.so.1 for CUDA %d.%d, %d GPU%s",
                      answer->version / 1000, answer->version % 1000 / 10, answer->count,
                      answer->count == 1 ? "" : "s");
        doctor->cards = (unsigned)answer->count;
        for (int i = 0; i < answer->count && i < DRIVER_GPUS; i++)
            judge_gpu(doctor, i, &answer->gpus[i]);
        if (strcmp(answer->gpus[0].name, "Simulated GPU") == 0)
            diagnosis_add(doctor, DOCTOR_OK, "driver",
                          "it is simulated: kernels of .cu files, and NVIDIA's own runtime, which "
                          "nvcc links in without -cudart shared, need a card");
    }
}

void doctor_driver(struct doctor *doctor) {
    struct driver_answer answer;
    const bool hip = doctor->runtime == RUNTIME_HIP;
    TOOL_TEMP char *silence = driver_ask(doctor->runtime, doctor->timeout, &answer);
    if (silence) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "%s", silence);
        diagnosis_remedy(doctor, hip ? "see rocminfo and dmesg; load amdgpu anew, or reboot"
                                     : "see nvidia-smi, and dmesg for Xid errors; reload the "
                                       "driver or reboot");
    } else {
        (hip ? doctor_hip : judge_cuda)(doctor, &answer);
    }
}
