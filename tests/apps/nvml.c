/*
 * nvml.c - stands for libnvidia-ml: what the driver would say of processes is in the environment.
 *
 * GPUSHARE_TEST_NVML="PID:BYTES ...", of one GPU.
 */
#include <stdlib.h>

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

enum { OK = 0, UNKNOWN = 999, INSUFFICIENT_SIZE = 7 };

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes);

int nvmlInit_v2(void) {
    return getenv("GPUSHARE_TEST_NVML") ? OK : UNKNOWN;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    static char one;
    *device = &one;
    return index == 0 ? OK : UNKNOWN;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes) {
    const char *text = getenv("GPUSHARE_TEST_NVML");
    const unsigned room = *count;
    for (*count = 0; *text != 0; ++*count) {
        char *end;
        struct process process = {.pid = (unsigned)strtoul(text, &end, 10)};
        process.bytes = strtoull(end + 1, &end, 10);
        if (*count < room)
            processes[*count] = process;
        text = end + (*end == ' ');
    }
    return *count <= room ? OK : INSUFFICIENT_SIZE;
}
