/*
 * The tests' kernels (tests/apps/kernels.cu), from the file apps/kernels.ptx beside the binary, and
 * work for them to run beside.
 */
#pragma once

#include "gpu.h"

#include <stdint.h>

enum { SPIN_NS = 200000000 };

/* After place_start. Each has run once: a card loads them when they are first asked for. */
CUresult kernels_load(void);
/* The module that has them, loaded again each time. */
CUresult kernels_module(CUmodule *module);
CUresult kernel_read(CUstream stream, CUdeviceptr from, uint64_t words, CUdeviceptr sum);
CUresult kernel_write(CUstream stream, CUdeviceptr to, uint64_t words, uint32_t value);
CUresult kernel_add(CUstream stream, CUdeviceptr to, uint64_t words, uint32_t value);
/* For SPIN_NS, or as long as `ns` says. */
CUresult kernel_spin(CUstream stream, CUdeviceptr touch, uint64_t words);
CUresult kernel_spin_for(CUstream stream, CUdeviceptr touch, uint64_t words, uint64_t ns);
