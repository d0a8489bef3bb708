/*
 * user_frame.h - which part of a stack is the user's.
 */
#ifndef USER_FRAME_H
#define USER_FRAME_H

#include "logs/logs.h"
#include "symbol.h"

/* The innermost frame that is not in CUDA, libc or gpushare; NULL: there is none. */
const struct log_frame *user_frame_find(const struct log_stack *stack);

/* The innermost place in such a frame whose file and line are known; NULL: there is none. */
const struct symbol_place *user_frame_place(const struct log_stack *stack, struct symbols *symbols);

/* How many frames from the innermost on tell a person anything: what lies beyond is how libc starts
 * a program. Never 0 for a stack that has frames. */
size_t user_frame_shown(const struct log_stack *stack, struct symbols *symbols);

/* Equal for one finding in different builds of one program, as far as can be: from the functions of
 * its stack, not from their addresses. */
uint64_t user_frame_hash(const struct log_line *line, struct symbols *symbols);

#endif
