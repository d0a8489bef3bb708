/*
 * runtime_frames.h - the frames of a CUDA runtime that is linked into the program itself.
 *
 * nvcc links libcudart_static.a unless it is told otherwise. Its functions cannot be hooked, so the
 * library sees that the runtime's own code calls the driver's function, such as cuMemFree. The
 * symbols that the linker left say which function the program called, such as cudaFree, and where.
 */
#pragma once

#include <stdbool.h>

#include "symbol.h"

/* Removes the runtime's frames from all stacks of the line, and makes the call the runtime's. */
void runtime_frames_strip(struct log_line *line, struct symbols *symbols);

/* Whether the stack may begin with frames of a runtime that nothing distinguishes from the
 * program's, because the program has no symbols. */
bool runtime_frames_hidden(const struct log_line *line, struct symbols *symbols);
