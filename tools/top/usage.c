#include "usage.h"

#include <dlfcn.h>

#include "cli/tool.h"

/* --- what the driver says of processes --- */

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

static void driver_memory_begin(struct driver_memory *memory) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    *memory = (struct driver_memory){.calls = NULL};
    if (library && find_calls(library) && calls.init() == NVML_OK)
        memory->calls = &calls;
}

static struct driver_process *driver_find(const struct driver_memory *memory, uint32_t pid) {
    for (size_t i = 0; i < memory->count; i++)
        if (memory->processes[i].pid == pid)
            return &memory->processes[i];
    return NULL;
}

static void add(struct driver_memory *memory, uint32_t pid, uint64_t bytes) {
    struct driver_process *known = driver_find(memory, pid);
    if (bytes == NVML_NOT_AVAILABLE)
        return;
    if (known)
        known->bytes += bytes;
    else
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

/* Asks the driver again. */
static void driver_memory_read(struct driver_memory *memory) {
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

const char *const usage_keys[USAGE_KEYS] = {
    [USAGE_PROPORTIONAL] = "proportional",
    [USAGE_OWN] = "own",
    [USAGE_SHARED] = "shared",
    [USAGE_SAVED] = "saved",
    [USAGE_DRIVER] = "driver",
    [USAGE_NAME] = "name",
    [USAGE_PID] = "pid",
};

/* --- reading --- */

void usage_begin(struct usage *usage, char *const *logs, size_t log_count) {
    *usage = (struct usage){.process_count = 0};
    driver_memory_begin(&usage->driver);
    log_tail_begin(&usage->tail, logs, log_count);
}

static void forget(struct usage *usage) {
    accounting_free(&usage->accounting);
    view_free(&usage->view);
    free(usage->processes);
    *usage = (struct usage){.driver = usage->driver, .tail = usage->tail};
}

/* Adds what the driver says, which counts a region as its exporter's. */
static void ask_driver(const struct usage *usage, struct usage_process *process) {
    const struct account *account = &process->account;
    const struct gps_owner *owner = &account->process->owner;
    const struct driver_process *said =
        owner->pid_ns == usage->view.pid_ns ? driver_find(&usage->driver, owner->pid) : NULL;
    process->driver_known = said;
    process->driver = said ? said->bytes : 0;
    const uint64_t rest = process->driver - account->charge.bytes;
    process->fair_known = process->driver_known && !account->charge.unknown &&
                          account->charge.bytes <= process->driver;
    process->fair = process->fair_known ? rest + account->bytes.proportional : 0;
}

static void add_processes(struct usage *usage) {
    const struct accounting *accounting = &usage->accounting;
    for (size_t at = 0; at < accounting->count;) {
        usage->processes =
            tool_grow(usage->processes, usage->process_count, sizeof(*usage->processes));
        struct usage_process *process = &usage->processes[usage->process_count++];
        *process = (struct usage_process){.driver = 0};
        at = accounting_process(accounting, at, &process->account);
        ask_driver(usage, process);
    }
}

bool usage_read(struct usage *usage) {
    struct view view;
    forget(usage);
    const bool logs = log_tail_read(&usage->tail);
    if (!view_read(&view))
        return false;
    usage->view = view;
    driver_memory_read(&usage->driver);
    accounting_make(&usage->view, &usage->accounting);
    usage->total = accounting_total(&usage->accounting);
    add_processes(usage);
    return logs;
}

void usage_end(struct usage *usage) {
    forget(usage);
    free(usage->driver.processes);
    log_tail_end(&usage->tail);
}

/* --- sorting --- */

static uint64_t bytes_of(const struct usage_process *process, enum usage_key key) {
    const struct account_bytes *bytes = &process->account.bytes;
    switch (key) {
    case USAGE_OWN:
        return bytes->own;
    case USAGE_SHARED:
        return bytes->shared;
    case USAGE_SAVED:
        return account_saved(bytes);
    case USAGE_DRIVER:
        return process->driver_known ? process->driver : 0;
    default:
        return bytes->proportional;
    }
}

/* Processes that are equal to the KiB stay in the order of their pids: the bytes that cannot be
 * split evenly count for one of them. */
static int by_key(const void *left, const void *right, void *arg) {
    const struct usage_process *a = left, *b = right;
    const struct usage_order *order = arg;
    const struct view_process *first = a->account.process, *second = b->account.process;
    int result = 0;
    if (order->key == USAGE_NAME)
        result = strcmp(first->owner.command, second->owner.command);
    else if (order->key != USAGE_PID)
        result = tool_compare(bytes_of(b, order->key) / 1024, bytes_of(a, order->key) / 1024);
    if (result == 0) /* the view has them sorted */
        result = tool_compare((uintptr_t)first, (uintptr_t)second);
    return order->reverse ? -result : result;
}

void usage_sort(struct usage *usage, struct usage_order order) {
    if (usage->process_count > 1)
        qsort_r(usage->processes, usage->process_count, sizeof(*usage->processes), by_key, &order);
}
