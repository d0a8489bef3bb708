/*
 * fork.c - what a forked child forgets.
 *
 * One row a module with state: the function that forgets what the parent had, or why the state is
 * as good in the child. The parent's threads are not in the child, but their locks may be taken
 * there: a reset touches none of them, and loses memory rather than freeing it. tests/rooms
 * compares the rows with the object files, so no module with state is left out.
 */
#include "audit/leak.h"
#include "audit/reporter.h"
#include "ipc/close_before_free.h"
#include "ipc/export.h"
#include "keeper/keeper_client.h"
#include "lifecycle.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/registry.h"
#include "registry/table_memory.h"
#include "rules/rules.h"
#include "stack/trace.h"
#include "upload/leader.h"
#include "upload/stall.h"
#include "upload/upload.h"
#include "upload/worker_pool.h"
#include "upload/write.h"
#include "util/high_descriptor.h"
#include "vmm/mapping.h"
#include "vmm/parked_descriptors.h"
#include "vmm/vmm_region.h"

/* In the order of the rooms, from the bottom up. */
#define MODULES(FORGETS, KEEPS)                                                                    \
    KEEPS(processor, "it is the same")                                                             \
    FORGETS(high_descriptor, gps_descriptor_reset)                                                 \
    FORGETS(keeper_client, gps_keeper_reset)                                                       \
    KEEPS(log, "gps_log_open begins it anew")                                                      \
    KEEPS(sink, "gps_log_open begins it anew")                                                     \
    KEEPS(stack, "the executable is the same")                                                     \
    KEEPS(find_object, "so is the linker")                                                         \
    FORGETS(trace, gps_trace_reset)                                                                \
    KEEPS(scope, "the driver's operations are where they were")                                    \
    FORGETS(membership, gps_membership_reset)                                                      \
    FORGETS(references, gps_references_reset)                                                      \
    FORGETS(table_memory, gps_table_memory_reset)                                                  \
    FORGETS(allocations, gps_registry_reset_allocations)                                           \
    FORGETS(imports, gps_registry_reset_imports)                                                   \
    FORGETS(events, gps_registry_reset_events)                                                     \
    FORGETS(freed_history, gps_freed_reset)                                                        \
    FORGETS(reporter, gps_report_reset)                                                            \
    FORGETS(leak, gps_leak_reset)                                                                  \
    KEEPS(allocation_log, "gps_allocation_log_start begins it anew")                               \
    FORGETS(parked_descriptors, gps_parked_reset)                                                  \
    FORGETS(mapping, gps_mapping_reset)                                                            \
    FORGETS(vmm_region, gps_vmm_region_reset)                                                      \
    FORGETS(worker_pool, gps_pool_reset)                                                           \
    FORGETS(upload, gps_upload_reset)                                                              \
    FORGETS(stall, gps_stall_reset)                                                                \
    FORGETS(leader, gps_leader_reset)                                                              \
    FORGETS(write, gps_write_reset)                                                                \
    FORGETS(export, gps_export_reset)                                                              \
    FORGETS(close_before_free, gps_deferred_reset)                                                 \
    FORGETS(rules, gps_rules_reset)                                                                \
    FORGETS(process, gps_process_reset) /* the configuration, to which the rules point */          \
    KEEPS(start, "it tells that this is a fork")                                                   \
    KEEPS(exit, "exit handlers survive a fork")                                                    \
    KEEPS(driver, "the driver's functions are where they were")                                    \
    KEEPS(resolver, "so are libc's")                                                               \
    KEEPS(runtime, "so are call sites and the runtime's functions")

static void (*const resets[])(void) = {
#define RESET(module, reset) reset,
#define NOTHING(module, why)
    MODULES(RESET, NOTHING)};

void gps_fork_reset(void) {
    for (unsigned i = 0; i < sizeof(resets) / sizeof(resets[0]); i++)
        resets[i]();
}
