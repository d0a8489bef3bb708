/*
 * process_tree.h - the processes that descend from this one, as /proc shows them.
 *
 * What cannot be read of another process counts as empty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef void process_tree_fn(void *arg, uint32_t pid);

/* Calls fn, unless it is NULL, for each that lives. Returns how many do. */
size_t process_tree_each(process_tree_fn *fn, void *arg);

/* What a person calls it, as shim/process/program.h has it: cam.py, not python3. malloc'ed. */
char *process_tree_name(uint32_t pid);

/* The value of a variable in the environment with which it was started; malloc'ed, NULL for none.
 */
char *process_tree_variable(uint32_t pid, const char *variable);
