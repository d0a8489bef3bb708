#include "usage.h"

#include <dlfcn.h>

#include "cli/nvml.h"
#include "cli/tool.h"
#include "util/clock.h"

/* --- the driver's figures of processes, as nvidia-smi prints them --- */

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
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, struct nvml_process *processes);
} calls;

static bool usage_find_driver(void) {
    void *library = nvml_open();
    if (!library)
        return false;
    *(void **)&calls.count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&calls.device = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!calls.processes)
        *(void **)&calls.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    return calls.count && calls.device && calls.processes;
}

/* Adds what a process has on one GPU. */
static void usage_add_process(struct usage *usage, const struct nvml_process *said) {
    TOOL_EACH(struct usage_process, process, usage->processes, usage->process_count) {
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
            usage_add_process(usage, &processes[i]);
}

static void usage_ask_driver(struct usage *usage) {
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
    *usage = (struct usage){.driver = usage_find_driver()};
    log_tail_begin(&usage->tail, logs, log_count);
}

static void usage_forget(struct usage *usage) {
    accounting_free(&usage->accounting);
    view_free(&usage->view);
    free(usage->processes);
    free(usage->frames);
    *usage = (struct usage){.driver = usage->driver, .tail = usage->tail};
}

/* --- whole frames --- */

static const struct usage_rate not_known = {-1, -1};

static double a_second(uint64_t now, uint64_t before, uint64_t nanos) {
    return now > before ? (double)(now - before) * GPS_SECOND / (double)nanos : 0;
}

/* A reader that has left and come again begins anew. */
static struct usage_rate reader_rate(const struct view_frames *before,
                                     const struct gps_frames_reader *reader, uint64_t nanos) {
    TOOL_EACH(const struct gps_frames_reader, was, before->readers, before->reader_count) {
        if (gps_owner_equal(&was->owner, &reader->owner) && was->read <= reader->read)
            return (struct usage_rate){a_second(reader->read, was->read, nanos),
                                       a_second(reader->left_out, was->left_out, nanos)};
    }
    return not_known;
}

static void rate_frames(struct usage_frames *frames, const struct view_frames *before) {
    const struct view_frames *now = &frames->now;
    const struct gps_frames_writer *writer = &now->said.writer, *was = &before->said.writer;
    const uint64_t nanos = now->now - before->now;
    if (nanos == 0)
        return;
    frames->rate = (struct usage_rate){a_second(writer->newest, was->newest, nanos),
                                       a_second(writer->left_out, was->left_out, nanos)};
    for (size_t i = 0; i < now->reader_count; i++)
        frames->readers[i] = reader_rate(before, &now->readers[i], nanos);
}

static void read_frames(struct usage *usage, const struct usage_frames *before, size_t count) {
    for (size_t i = 0; i < usage->view.region_count; i++) {
        struct usage_frames frames = {.region = &usage->view.regions[i], .rate = not_known};
        if (!view_frames_read(&usage->view, frames.region, &frames.now))
            continue;
        for (size_t j = 0; j < GPS_FRAMES_READERS_MAX; j++)
            frames.readers[j] = not_known;
        for (size_t j = 0; j < count && frames.now.status == 0; j++)
            if (before[j].now.status == 0 &&
                gps_id_equal(&before[j].now.said.head.region, &frames.now.said.head.region))
                rate_frames(&frames, &before[j].now);
        TOOL_APPEND(usage->frames, usage->frames_count, frames);
    }
}

const struct usage_frames *usage_frames_of(const struct usage *usage,
                                           const struct view_region *region) {
    for (size_t i = 0; i < usage->frames_count; i++)
        if (usage->frames[i].region == region)
            return &usage->frames[i];
    return NULL;
}

/* --- reading everything --- */

/* The driver's figure counts a region as its exporter's. */
static void usage_split_process(struct usage_process *process) {
    const struct account *account = &process->account;
    if (process->driver != USAGE_UNKNOWN && !account->charge.unknown &&
        account->charge.bytes <= process->driver)
        process->fair = process->driver - account->charge.bytes + account->bytes.proportional;
}

bool usage_read(struct usage *usage) {
    struct view view;
    const size_t count = usage->frames_count;
    TOOL_TEMP struct usage_frames *before = usage->frames;
    usage->frames = NULL;
    usage_forget(usage);
    const bool logs = log_tail_read(&usage->tail);
    if (!view_read(&view))
        return false;
    usage->view = view;
    accounting_make(&usage->view, &usage->accounting);
    read_frames(usage, before, count);
    for (size_t at = 0; at < usage->accounting.count;) {
        struct usage_process process = {.driver = USAGE_UNKNOWN, .fair = USAGE_UNKNOWN};
        at = accounting_process(&usage->accounting, at, &process.account);
        TOOL_APPEND(usage->processes, usage->process_count, process);
    }
    usage_ask_driver(usage);
    for (size_t i = 0; i < usage->process_count; i++)
        usage_split_process(&usage->processes[i]);
    return logs;
}

void usage_end(struct usage *usage) {
    usage_forget(usage);
    log_tail_end(&usage->tail);
}

/* --- sorting --- */

static uint64_t usage_key_bytes(const struct usage_process *process, enum usage_key key) {
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
static int usage_by_key(const void *left, const void *right, void *arg) {
    const struct usage_process *a = left, *b = right;
    const struct usage_order *order = arg;
    const struct view_process *first = a->account.process, *second = b->account.process;
    int result = 0;
    if (order->key == USAGE_NAME)
        result = strcmp(first->owner.command, second->owner.command);
    else if (order->key != USAGE_PID)
        result = tool_compare(usage_key_bytes(b, order->key) / 1024,
                              usage_key_bytes(a, order->key) / 1024);
    if (result == 0) /* the view has them sorted */
        result = tool_compare((uintptr_t)first, (uintptr_t)second);
    return order->reverse ? -result : result;
}

void usage_sort(struct usage *usage, struct usage_order order) {
    if (usage->process_count > 1)
        qsort_r(usage->processes, usage->process_count, sizeof(*usage->processes), usage_by_key,
                &order);
}
