/*
 * Kernels, by name: what a function of a module does here, with the memory that its arguments give
 * it. It reaches that memory part by part, each at the moment it is touched.
 */
#pragma once

#include "context.h"

enum { KERNEL_PARAMETERS = 4 };

/* One launch. */
struct launch {
    const struct kernel *kernel;
    CUcontext context;
    CUfunction function;
    void *places[KERNEL_PARAMETERS];          /* of its arguments, for who asks what a node does */
    uint64_t argument[KERNEL_PARAMETERS + 1]; /* and behind them the number of its threads */
};

/* NULL if there is none of that name. */
const struct kernel *kernel_find(const char *name);
/* Its arguments, from where cuLaunchKernel has them. */
void kernel_arguments(struct launch *launch, uint64_t threads, void *const *parameters);
const char *kernel_name(const struct kernel *kernel);
/* How wide each of them is, in bytes; 0: there is none of this number. */
unsigned kernel_width(const struct kernel *kernel, size_t index);
/* Where they are in memory that has them side by side, each at a multiple of its size. */
void kernel_places(const struct kernel *kernel, void *bytes, void **parameters);
/* 0, or 700 where the memory is not as it should be; what lost the context, if it is lost. */
CUresult kernel_run(const struct launch *launch);
/* Whether its arguments give it memory there. */
bool kernel_uses(const struct launch *launch, uint64_t address, uint64_t size);
