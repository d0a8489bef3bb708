/*
 * Modules: a launch as a node of a graph, which does it again and again.
 */
#pragma once

#include "stream.h"

CUresult module_launch_node(const CUDA_KERNEL_NODE_PARAMS_v2 *what, const struct work **work,
                            void **argument);
