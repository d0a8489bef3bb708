/*
 * device_digest.h - the bytes of memory on the GPU, hashed and compared.
 *
 * By kernels where the library was built with nvcc and the driver takes them; else they are read
 * back piece by piece, which is slower. Inside a gps_scope that has entered the memory's context;
 * one thread at a time (merger.h). The codes are the driver's.
 */
#pragma once

#include "digest.h"

/* The hashes of all its chunks. */
int gps_device_hash(uint64_t pointer, uint64_t size, struct gps_hash *hashes);
int gps_device_digest(uint64_t pointer, uint64_t size, struct gps_digest *digest);
int gps_device_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal);
