/*
 * The driver's API as the library exports it: every ABI version under its own name, without the
 * macros by which cuda.h renames them for programs. All of it, and nothing else, is exported.
 */
#ifndef SIM_ABI_H
#define SIM_ABI_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#pragma GCC visibility push(default)
#include <cuda.h>
/* Of cudaEGL.h, which needs EGL's own headers. */
CUresult CUDAAPI cuEventCreateFromEGLSync(CUevent *event, void *sync, unsigned int flags);
/* The simulator's own, for a function that nobody knows yet: a number made of its arguments. */
double CUDAAPI cuSimNewest(long a, long b, long c, long d, long e, long f, long g, double x,
                           double y);
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdint.h>

#endif
