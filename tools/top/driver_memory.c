/* driver_memory.c - see driver_memory.h. */
#include "driver_memory.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "cli/tool.h"

#define NVML_OK             0
#define NVML_TOO_SMALL      7 /* the array is too small; the count says how large it must be */
#define NVML_NOT_AVAILABLE  UINT64_MAX
#define NVML_PROCESSES_MORE 32 /* so many processes may start between two calls */

/* The nvmlProcessInfo_t of the functions _v2 and _v3. */
struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

static struct driver_calls {
    int (*init)(void);
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, struct nvml_process *processes);
} calls;

static bool find_calls(void *library) {
    *(void **)&calls.init = dlsym(library, "nvmlInit_v2");
    *(void **)&calls.count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&calls.device = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!calls.processes)
        *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    return calls.init && calls.count && calls.device && calls.processes;
}

void driver_memory_begin(struct driver_memory *memory) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    *memory = (struct driver_memory){.calls = NULL};
    if (library && find_calls(library) && calls.init() == NVML_OK)
        memory->calls = &calls;
}

static void add(struct driver_memory *memory, uint32_t pid, uint64_t bytes) {
    if (bytes == NVML_NOT_AVAILABLE)
        return;
    for (size_t i = 0; i < memory->count; i++)
        if (memory->processes[i].pid == pid) {
            memory->processes[i].bytes += bytes;
            return;
        }
    TOOL_APPEND(memory->processes, memory->count, (struct driver_process){pid, bytes});
}

static void read_device(struct driver_memory *memory, void *device) {
    unsigned count = 0;
    int code = calls.processes(device, &count, NULL);
    if (code != NVML_TOO_SMALL)
        return;
    count += NVML_PROCESSES_MORE;
    TOOL_TEMP struct nvml_process *processes = tool_zeroed(count, sizeof(*processes));
    code = calls.processes(device, &count, processes);
    for (unsigned i = 0; code == NVML_OK && i < count; i++)
        add(memory, processes[i].pid, processes[i].bytes);
}

void driver_memory_read(struct driver_memory *memory) {
    unsigned count = 0;
    memory->count = 0;
    if (!memory->calls || calls.count(&count) != NVML_OK)
        return;
    for (unsigned i = 0; i < count; i++) {
        void *device;
        if (calls.device(i, &device) == NVML_OK)
            read_device(memory, device);
    }
}

bool driver_memory_of(const struct driver_memory *memory, uint32_t pid, uint64_t *bytes) {
    for (size_t i = 0; i < memory->count; i++)
        if (memory->processes[i].pid == pid) {
            *bytes = memory->processes[i].bytes;
            return true;
        }
    return false;
}

void driver_memory_end(struct driver_memory *memory) {
    free(memory->processes);
    memory->processes = NULL;
    memory->count = 0;
}
