/*
 * selftest.h - `gpushare doctor --selftest`: tries on this machine what gpushare is for.
 *
 * Processes of this tool share a buffer, hand one over, misuse one and merge two, in a namespace of
 * their own (scratch.h), and say in a sentence how that went.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Takes `timeout` nanoseconds at most, and up to 6 seconds more where processes do not end. Prints
 * the steps and the machine's row. Returns the exit status. */
int selftest_run(bool json, uint64_t timeout);
/* Runs as one of the processes, `runtime` being "cuda" or "hip". Returns the exit status. */
int selftest_act(const char *runtime);
