/* user_frame.h - the part of a stack that is the user's code. */
#pragma once

#include <stdbool.h>

#include "logs/logs.h"
#include "symbol.h"

/* Whether it is not in CUDA, gpushare, libc or the C++ library, which start threads. */
bool user_frame_is(const struct log_frame *frame);

/* The innermost such frame; NULL: there is none. */
const struct log_frame *user_frame_find(const struct log_stack *stack);

/* The innermost place in such a frame whose file and line are known, or else the innermost one;
 * NULL: there is no such frame. */
const struct symbol_place *user_frame_place(const struct log_stack *stack, struct symbols *symbols);

/* The number of frames to show, from the innermost on. The frames of libc that start a program are
 * left out, unless there are no others. */
size_t user_frame_shown(const struct log_stack *stack, struct symbols *symbols);

/* A hash that mostly is equal for one finding in different builds of a program: it is made from the
 * functions of the stack, not from their addresses. */
uint64_t user_frame_hash(const struct log_line *line, struct symbols *symbols);

/* --- the frames of a runtime that is linked into the program itself --- */

/* nvcc links libcudart_static.a unless it is told otherwise. Its functions cannot be hooked, so the
 * library sees that the runtime's own code calls the driver's function, such as cuMemFree. The
 * symbols that the linker left say which function the program called, and where. */

/* Removes the runtime's frames from all stacks of the line, and makes the call the runtime's. */
void runtime_frames_strip(struct log_line *line, struct symbols *symbols);

/* Whether the stack may begin with frames of a runtime that nothing distinguishes from the
 * program's, because the program has no symbols. */
bool runtime_frames_hidden(const struct log_line *line, struct symbols *symbols);
