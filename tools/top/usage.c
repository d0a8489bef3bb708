/* usage.c - see usage.h. */
#include "usage.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

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
    usage->accounting = (struct accounting){.count = 0};
    usage->view = (struct view){.region_count = 0};
    usage->processes = NULL;
    usage->process_count = 0;
    usage->total = (struct account_gpu){.device = NULL};
}

/* Adds what the driver says, which counts a region as its exporter's. */
static void ask_driver(const struct usage *usage, struct usage_process *process) {
    const struct account *account = &process->account;
    const struct gps_owner *owner = &account->process->owner;
    process->driver_known = owner->pid_ns == usage->view.pid_ns &&
                            driver_memory_of(&usage->driver, owner->pid, &process->driver);
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
    driver_memory_end(&usage->driver);
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
