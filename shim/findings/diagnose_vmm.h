/*
 * diagnose_vmm.h - why the driver refused a call for VMM memory, by the books.
 *
 * As in diagnose.h, only what is certain is reported, and the program gets the driver's code in any
 * case. Nothing is said but of the code 1, if not told. Any thread may call the functions, and none
 * needs a scope.
 */
#pragma once

#include <stdint.h>

void gps_diagnose_release(uint64_t handle, int code);
/* Memory of a device was not made, of this size, or not mapped there. */
void gps_diagnose_vmm_create(uint64_t size, int code);
void gps_diagnose_map(uint64_t handle, uint64_t pointer, uint64_t size, int code);
void gps_diagnose_unmap(uint64_t pointer, uint64_t size, int code);
/* The driver has answered 0, and nothing was mapped there. */
void gps_diagnose_unmap_nothing(uint64_t pointer, uint64_t size);
/* `type`: CUmemAllocationHandleType. */
void gps_diagnose_vmm_export(uint64_t handle, uint32_t type, int code);
/* By a descriptor; the codes 101 and 217, too. */
void gps_diagnose_vmm_import(int descriptor, int code);
void gps_diagnose_unreserve(uint64_t pointer, uint64_t size, int code);
