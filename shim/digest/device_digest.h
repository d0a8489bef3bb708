/*
 * device_digest.h - hashes and compares memory on the GPU.
 *
 * Kernels do the work if the library was built with nvcc and the driver accepts them. Otherwise the
 * bytes are copied to main memory piece by piece, which is slower. To be called inside a gps_scope
 * that has entered the memory's context, by one thread at a time (merger.h). Functions return codes
 * of the driver.
 */
#pragma once

#include "digest.h"

/* The hashes of all its chunks. */
int gps_device_hash(uint64_t pointer, uint64_t size, struct gps_hash *hashes);
int gps_device_digest(uint64_t pointer, uint64_t size, struct gps_digest *digest);
int gps_device_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal);
