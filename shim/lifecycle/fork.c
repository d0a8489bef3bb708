/*
 * fork.c - what a forked child forgets.
 *
 * One row a module with state. The parent's threads are not in the child, but their locks may be
 * taken there: a reset touches none of them, and loses memory rather than freeing it. tests/resets
 * compares the rows with the object files, so that a module with state cannot be forgotten.
 */
#include "audit/allocation_log.h"
#include "audit/leak.h"
#include "audit/reporter.h"
#include "ipc/close_before_free.h"
#include "ipc/export.h"
#include "lifecycle.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/registry.h"
#include "rules/rules.h"
#include "stack/trace.h"
#include "upload/staging_buffer.h"
#include "upload/stall.h"
#include "upload/upload.h"
#include "upload/worker_pool.h"
#include "upload/write.h"
#include "vmm/mapping.h"
#include "vmm/parked_descriptors.h"
#include "vmm/vmm_region.h"

/* In the order of the rooms, from the bottom up. */
static void (*const resets[])(void) = {
    gps_trace_reset,
    gps_membership_reset,
    gps_references_reset,
    gps_registry_reset_allocations,
    gps_registry_reset_imports,
    gps_registry_reset_events,
    gps_freed_reset,
    gps_report_reset,
    gps_leak_reset,
    gps_parked_reset,
    gps_mapping_reset,
    gps_vmm_region_reset,
    gps_pool_reset,
    gps_staging_reset,
    gps_upload_reset,
    gps_stall_reset,
    gps_write_reset,
    gps_export_reset,
    gps_deferred_reset,
    gps_rules_reset,
    gps_process_reset, /* the configuration, to which the rules point */
};

void gps_fork_reset(void) {
    for (unsigned i = 0; i < sizeof(resets) / sizeof(resets[0]); i++)
        resets[i]();
}
