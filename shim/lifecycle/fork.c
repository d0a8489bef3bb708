/*
 * fork.c - what a forked child forgets.
 *
 * One row a module with state: the function that forgets what the parent had, or why the state is
 * as good in the child. The parent's threads are not in the child, but their locks may be taken
 * there: a reset touches none of them, and loses memory rather than freeing it. tests/rooms
 * compares the rows with the object files, so no module with state is left out.
 */
#include "digest/worker_pool.h"
#include "findings/leaks.h"
#include "findings/reporter.h"
#include "gate/gate.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/import_slot.h"
#include "ipc/open_cache.h"
#include "keeper/keeper_client.h"
#include "learn/learner.h"
#include "lifecycle.h"
#include "log/merged_sum.h"
#include "merge/allocation.h"
#include "merge/area.h"
#include "merge/exclusion.h"
#include "merge/keeper_watch.h"
#include "merge/merger.h"
#include "merge/rdma.h"
#include "merge/shared_block.h"
#include "merge/unmerged.h"
#include "merge/work.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/promise.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/record_claims.h"
#include "registry/registry.h"
#include "registry/table_memory.h"
#include "rules/rule_counts.h"
#include "rules/rules.h"
#include "stack/trace.h"
#include "threads/thread.h"
#include "vmm/mapping.h"
#include "vmm/parked_descriptors.h"
#include "vmm/vmm_region.h"
#include "writes/write.h"

/* In the order of the rooms, from the bottom up. */
#define MODULES(FORGETS, KEEPS)                                                                    \
    KEEPS(processor, "it is the same")                                                             \
    KEEPS(file, "a number in names that also have the process's own")                              \
    FORGETS(keeper_client, gps_keeper_reset)                                                       \
    KEEPS(log, "gps_log_open begins it anew")                                                      \
    KEEPS(sink, "gps_log_open begins it anew")                                                     \
    KEEPS(event_log, "gps_event_log_open begins it anew; until then it writes nothing")            \
    KEEPS(stack, "the executable is the same")                                                     \
    KEEPS(find_object, "so is the linker")                                                         \
    FORGETS(trace, gps_trace_reset)                                                                \
    KEEPS(scope, "the driver's operations are where they were")                                    \
    KEEPS(call_counter, "its start takes another row")                                             \
    FORGETS(thread, gps_thread_reset)                                                              \
    FORGETS(membership, gps_membership_reset)                                                      \
    FORGETS(references, gps_references_reset)                                                      \
    FORGETS(promise, gps_promise_reset)                                                            \
    FORGETS(table_memory, gps_table_memory_reset)                                                  \
    FORGETS(allocations, gps_registry_reset_allocations)                                           \
    FORGETS(imports, gps_registry_reset_imports)                                                   \
    FORGETS(event_table, gps_registry_reset_events)                                                \
    FORGETS(freed_history, gps_freed_reset)                                                        \
    FORGETS(record_claims, gps_record_claims_reset)                                                \
    FORGETS(reporter, gps_report_reset)                                                            \
    FORGETS(leaks, gps_leak_reset)                                                                 \
    FORGETS(parked_descriptors, gps_parked_reset)                                                  \
    FORGETS(mapping, gps_mapping_reset)                                                            \
    FORGETS(vmm_region, gps_vmm_region_reset)                                                      \
    FORGETS(worker_pool, gps_pool_reset)                                                           \
    KEEPS(digest, "a key, of which shared_block makes sure first")                                 \
    KEEPS(load, "a buffer and a count")                                                            \
    KEEPS(device_digest, "a buffer")                                                               \
    FORGETS(gate, gps_gate_reset)                                                                  \
    FORGETS(streams, gps_streams_reset)                                                            \
    FORGETS(swap, gps_swap_reset)                                                                  \
    FORGETS(write, gps_write_reset)                                                                \
    FORGETS(area, gps_area_reset)                                                                  \
    FORGETS(exclusion, gps_exclusion_reset)                                                        \
    FORGETS(keeper_watch, gps_keeper_watch_reset)                                                  \
    FORGETS(shared_block, gps_shared_reset)                                                        \
    FORGETS(merged_sum, gps_merged_sum_reset)                                                      \
    FORGETS(unmerged, gps_unmerged_reset)                                                          \
    FORGETS(rdma, gps_rdma_reset)                                                                  \
    FORGETS(merger, gps_merger_reset)                                                              \
    FORGETS(work, gps_work_reset)                                                                  \
    FORGETS(allocation, gps_merge_reset)                                                           \
    FORGETS(learner, gps_learn_reset)                                                              \
    FORGETS(export, gps_export_reset)                                                              \
    FORGETS(import_slot, gps_import_slot_reset)                                                    \
    KEEPS(importers, "a time")                                                                     \
    FORGETS(open_cache, gps_open_cache_reset)                                                      \
    FORGETS(deferred, gps_deferred_reset)                                                          \
    FORGETS(rule_counts, gps_rule_counts_reset)                                                    \
    FORGETS(rules, gps_rules_reset)                                                                \
    FORGETS(process, gps_process_reset) /* the configuration, to which the rules point */          \
    KEEPS(start, "it tells that this is a fork")                                                   \
    KEEPS(exit, "exit handlers survive a fork")                                                    \
    KEEPS(kernels, "no call of the driver succeeds in it")                                         \
    KEEPS(driver, "libcuda is where it was, and there is no lock")                                 \
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
