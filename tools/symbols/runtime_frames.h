/*
 * runtime_frames.h - the frames of a CUDA runtime that is linked into the program itself.
 *
 * nvcc links libcudart_static.a unless it is told otherwise. Its functions cannot be hooked: so the
 * library sees the driver's function, as cuMemFree, called by the runtime's own code. The symbols
 * that the linker left tell what the program called, as cudaFree, and where.
 */
#pragma once

#include <stdbool.h>

#include "symbol.h"

/* Removes the runtime's frames from all stacks of the line, and makes the call the runtime's. */
void runtime_frames_strip(struct log_line *line, struct symbols *symbols);

/* Whether there can be such frames that cannot be told from the program's: it has no symbols. */
bool runtime_frames_hidden(const struct log_line *line, struct symbols *symbols);
