/*
 * linker.h - all loaded objects, as the linker tells of them.
 *
 * The linker lists them under a lock of its own, which no C library frees in a forked child: where
 * another thread of the parent was in there, whoever asks in the child waits for ever. So a forked
 * child reads the linker's list itself, until an object has come or gone in it: that takes the same
 * lock, so the lock is free, and the list changes under its readers from then on. Nothing here
 * allocates or changes errno. Safe from any thread.
 */
#pragma once

#include <link.h>
#include <stddef.h>

typedef int gps_linker_fn(struct dl_phdr_info *info, size_t size, void *arg);

/* As dl_iterate_phdr. In a forked child it leaves out an object without an ELF header at its base,
 * and tells of the first four members of `info` alone. */
int gps_linker_each(gps_linker_fn *fn, void *arg);

/* When the library is loaded. */
void gps_linker_start(void);
