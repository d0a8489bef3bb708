/*
 * thread.h - threads of ours that work for themselves in the program's process.
 */
#pragma once

#include <stdbool.h>

/* Starts one, detached. Call inside a gps_scope: that has blocked all signals, and the thread
 * inherits it, so the program's handlers never run there. False: it could not be started. */
bool gps_thread_start(void *(*fn)(void *arg), void *arg);
