/*
 * linker.h - all loaded objects, by the linker's list.
 *
 * The linker lists them under a lock of its own, which no C library frees in a forked child: where
 * another thread of the parent held it, a thread of the child that takes it waits for ever. So a
 * forked child reads the linker's list itself, until an object has come or gone in it: that takes
 * the same lock, so the lock is free, and the list changes under its readers from then on. Nothing
 * here allocates or changes errno. Safe from any thread.
 */
#pragma once

#include <link.h>
#include <stddef.h>

typedef int gps_linker_fn(struct dl_phdr_info *info, size_t size, void *arg);

/* As dl_iterate_phdr. In a forked child it leaves out an object without an ELF header at its base,
 * and sets only the first four members of `info`. */
int gps_linker_each(gps_linker_fn *fn, void *arg);

/* Called when the library is loaded. */
void gps_linker_start(void);
