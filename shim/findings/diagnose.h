/*
 * diagnose.h - finds out afterwards why the driver refused a call.
 *
 * A refused call is rare and wrong already, so no cost is spared here: the driver is asked about
 * the pointer, and the directory is searched for the handle. A certain reason becomes a finding of
 * its own. Every other refusal of an IPC call is ipc-call-failed, which says what the code means.
 * The program gets the driver's own code in any case. Any thread may call the functions, and none
 * needs a scope but where said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"
#include "registry/freed_history.h"
#include "registry/graph_books.h"
#include "registry/pool_books.h"
#include "registry/registry.h"
#include "util/text.h"

/* The driver has refused to free a pointer (GPS_ASK_FREED), to close it or to give its handle. */
void gps_diagnose_pointer(enum gps_ask ask, uint64_t pointer, int code);
/* The call was denied because the memory that begins at `base` was freed before. `finding` is
 * policy's answer, and `detail` may be NULL. */
void gps_diagnose_freed(uint64_t pointer, uint64_t base, enum gps_finding finding,
                        const char *detail);
/* Adds where an address outside of all allocations lies: in main memory, or how far from the
 * nearest allocation. In a scope. */
void gps_whereabouts_say(struct gps_text *text, uint64_t address);
/* What follows from a code without the call's arguments; GPS_KNOWN_LIVE: nothing. In a scope. */
enum gps_known gps_known_of_code(int code);
/* The call has no place for its result. Called before the driver, which may not return. */
void gps_diagnose_no_output(void);
/* An IPC call was refused before the driver was asked. */
void gps_diagnose_refused_early(int code);
/* `record` is the region's as read before the driver's open; NULL where there was none. */
void gps_diagnose_open(const struct gps_import *import, const struct gps_region_record *record,
                       unsigned flags, int code);
/* The driver has opened a handle that has no record. */
void gps_diagnose_opened(const struct gps_import *import);
/* The handle of a pointer this far inside was opened, and the driver gave the base. */
void gps_diagnose_opened_at_base(uint64_t base, uint64_t offset);
/* An event for other processes could not be created; its handle was not given. */
void gps_diagnose_create_event(bool timed, int code);
void gps_diagnose_export_event(uint64_t event, int code);
void gps_diagnose_open_event(const uint8_t handle[GPS_HANDLE_BYTES], int code);
/* An event was opened; only an audit knows whether it lives. */
void gps_diagnose_opened_event(const struct gps_event *event,
                               const uint8_t handle[GPS_HANDLE_BYTES]);
/* A destroyed event is used (GPS_ASK_EVENT_USED) or destroyed again; the call may not return. */
void gps_diagnose_destroyed_event(enum gps_ask ask, uint64_t event,
                                  const struct gps_freed *destroyed);
/* An event has ended here; only an audit knows whether a wait for it was in vain. */
void gps_diagnose_ended_event(const struct gps_event *event);

/* --- diagnose_books.c: calls for memory pools, by the books --- */

/* The driver has refused to allocate from a pool, or to free a pointer. */
void gps_diagnose_pool_allocation(uint64_t pool, int code);
void gps_diagnose_pool_free(uint64_t pointer, int code);
/* The driver has given no descriptor of a pool, `type` as below, or no data of a pointer. */
void gps_diagnose_pool_export(uint64_t pool, uint32_t type, int code);
void gps_diagnose_pool_pointer_export(uint64_t pointer, int code);
/* Memory of a pool of this process's is freed, and taken from the books: an audit names the
 * processes that have it imported. */
void gps_diagnose_pool_order(const struct gps_pool_pointer *pointer);
/* A pool is destroyed, and taken from the books, with pointers that are alive. */
void gps_diagnose_pool_destroyed(const struct gps_pool *pool);

/* --- diagnose_books.c: calls for VMM memory, by the books --- */

void gps_diagnose_release(uint64_t handle, int code);
/* Memory of a device was not made, of this size, or not mapped there. */
void gps_diagnose_vmm_create(uint64_t size, int code);
void gps_diagnose_map(uint64_t handle, uint64_t pointer, uint64_t size, int code);
void gps_diagnose_unmap(uint64_t pointer, uint64_t size, int code);
/* An unmap has succeeded, and no memory was mapped there. */
void gps_diagnose_unmap_nothing(uint64_t pointer, uint64_t size);
/* `type`: CUmemAllocationHandleType. */
void gps_diagnose_vmm_export(uint64_t handle, uint32_t type, int code);
/* An import by a descriptor, as the program passed it; for the codes 101 and 217, too. */
void gps_diagnose_vmm_import(uint64_t shared, int code);
/* The first finds the fault of a descriptor, before an import as external memory, which closes it;
 * the second reports it. */
int gps_diagnose_descriptor(int descriptor);
void gps_diagnose_external(int descriptor, int wrong, int code);
void gps_diagnose_unreserve(uint64_t pointer, uint64_t size, int code);

/* A call for VMM memory or pools was refused, and no report has told why; `nowhere`: the call had
 * no place for its result. In audits. */
void gps_diagnose_refused(bool nowhere, int code);

/* --- diagnose_copy.c: copies, fills, and kernels with freed memory, in audits --- */

/* A copy or fill of these bytes of device memory was refused; 0: none, or they are not known. */
void gps_diagnose_copy(uint64_t address, uint64_t size, int code);
/* For other uses of addresses: reports only that no memory is mapped there. */
void gps_diagnose_unmapped(uint64_t address, uint64_t size, int code);
/* A kernel is about to get the address as its argument of this number. */
void gps_diagnose_argument(uint64_t address, unsigned number);

/* --- diagnose_graph.c: graphs with memory that has ended, in audits --- */

/* A graph is about to be launched, and memory that one of its nodes uses has ended. False: other
 * memory is there by now. In a scope. */
bool gps_diagnose_graph(const struct gps_graph_use *use, const struct gps_freed *freed);
