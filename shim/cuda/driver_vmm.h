/*
 * driver_vmm.h - the VMM rows of ops.h for CUDA; see there. driver.c puts them into the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

int gps_vmm_op_granularity(int device, uint64_t *bytes);
int gps_vmm_op_create(int device, uint64_t size, uint64_t *block);
int gps_vmm_op_release(uint64_t block);
int gps_vmm_op_export(uint64_t block, int *descriptor);
int gps_vmm_op_import(int descriptor, uint64_t *block);
int gps_vmm_op_reserve(uint64_t size, uint64_t *pointer);
int gps_vmm_op_unreserve(uint64_t pointer, uint64_t size);
int gps_vmm_op_map(uint64_t pointer, uint64_t size, uint64_t block);
int gps_vmm_op_unmap(uint64_t pointer, uint64_t size);
int gps_vmm_op_allow(uint64_t pointer, uint64_t size, int device, bool write);
int gps_vmm_op_copy(uint64_t to, uint64_t from, uint64_t size);
int gps_vmm_op_copy_out(void *to, uint64_t from, uint64_t size);
int gps_vmm_op_pin(void *memory, uint64_t size);
