#include "usage.h"

#include <dlfcn.h>

#include "cli/tool.h"

/* --- what the driver says of processes, as nvidia-smi prints it --- */

/* It counts shared memory as its exporter's alone. Its pids are those of the machine, so only
 * processes of our pid namespace can be looked up, and in a container mostly none. */

#define NVML_OK             0
#define NVML_TOO_SMALL      7  /* the array is too small; the count says how large it must be */
#define NVML_PROCESSES_MORE 32 /* so many processes may start between two calls */

/* The nvmlProcessInfo_t of the functions _v2 and _v3. */
struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

static struct {
    int (*init)(void);
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, struct nvml_process *processes);
} calls;

static bool find_driver(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&calls.init = dlsym(library, "nvmlInit_v2");
    *(void **)&calls.count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&calls.device = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!calls.processes)
        *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    return calls.init && calls.count && calls.device && calls.processes && calls.init() == NVML_OK;
}

/* Adds what a process has on one GPU. */
static void add(struct usage *usage, const struct nvml_process *said) {
    for (size_t i = 0; i < usage->process_count; i++) {
        struct usage_process *process = &usage->processes[i];
        const struct gps_owner *owner = &process->account.process->owner;
        if (owner->pid == said->pid && owner->pid_ns == usage->view.pid_ns)
            process->driver =
                said->bytes + (process->driver == USAGE_UNKNOWN ? 0 : process->driver);
    }
}

static void read_device(struct usage *usage, void *device) {
    unsigned count = 0;
    if (calls.processes(device, &count, NULL) != NVML_TOO_SMALL)
        return;
    count += NVML_PROCESSES_MORE;
    TOOL_TEMP struct nvml_process *processes = tool_zeroed(count, sizeof(*processes));
    const int code = calls.processes(device, &count, processes);
    for (unsigned i = 0; code == NVML_OK && i < count; i++)
        if (processes[i].bytes != USAGE_UNKNOWN)
            add(usage, &processes[i]);
}

static void ask_driver(struct usage *usage) {
    unsigned count = 0;
    if (!usage->driver || calls.count(&count) != NVML_OK)
        return;
    for (unsigned i = 0; i < count; i++) {
        void *device;
        if (calls.device(i, &device) == NVML_OK)
            read_device(usage, device);
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
    *usage = (struct usage){.driver = find_driver()};
    log_tail_begin(&usage->tail, logs, log_count);
}

static void forget(struct usage *usage) {
    accounting_free(&usage->accounting);
    view_free(&usage->view);
    free(usage->processes);
    *usage = (struct usage){.driver = usage->driver, .tail = usage->tail};
}

/* What the driver says counts a region as its exporter's. */
static void split(struct usage_process *process) {
    const struct account *account = &process->account;
    if (process->driver != USAGE_UNKNOWN && !account->charge.unknown &&
        account->charge.bytes <= process->driver)
        process->fair = process->driver - account->charge.bytes + account->bytes.proportional;
}

bool usage_read(struct usage *usage) {
    struct view view;
    forget(usage);
    const bool logs = log_tail_read(&usage->tail);
    if (!view_read(&view))
        return false;
    usage->view = view;
    accounting_make(&usage->view, &usage->accounting);
    for (size_t at = 0; at < usage->accounting.count;) {
        struct usage_process process = {.driver = USAGE_UNKNOWN, .fair = USAGE_UNKNOWN};
        at = accounting_process(&usage->accounting, at, &process.account);
        TOOL_APPEND(usage->processes, usage->process_count, process);
    }
    ask_driver(usage);
    for (size_t i = 0; i < usage->process_count; i++)
        split(&usage->processes[i]);
    return logs;
}

void usage_end(struct usage *usage) {
    forget(usage);
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
        return process->driver == USAGE_UNKNOWN ? 0 : process->driver;
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
