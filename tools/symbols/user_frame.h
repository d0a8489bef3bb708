/*
 * user_frame.h - the part of a stack that is the user's code.
 */
#pragma once

#include "logs/logs.h"
#include "symbol.h"

/* Whether it is not in CUDA, gpushare, libc or the C++ library, which start threads. */
bool user_frame_is(const struct log_frame *frame);

/* The innermost such frame; NULL: there is none. */
const struct log_frame *user_frame_find(const struct log_stack *stack);

/* The innermost place in such a frame whose file and line are known; NULL: there is none. */
const struct symbol_place *user_frame_place(const struct log_stack *stack, struct symbols *symbols);

/* The number of frames to show, from the innermost on. The frames of libc that start a program are
 * left out, unless there are no others. */
size_t user_frame_shown(const struct log_stack *stack, struct symbols *symbols);

/* A hash that mostly is equal for one finding in different builds of a program: it is made from the
 * functions of the stack, not from their addresses. */
uint64_t user_frame_hash(const struct log_line *line, struct symbols *symbols);
