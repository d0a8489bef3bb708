/*
 * main_memory.h - how much main memory a process may still take, and how much it has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The least of what the machine has, and of what each of its control groups (version 2) leaves. */
bool main_memory_left(uint32_t pid, uint64_t *bytes);
/* What the process has, swapped out or not. */
bool main_memory_of(uint32_t pid, uint64_t *bytes);
