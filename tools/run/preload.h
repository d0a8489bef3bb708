/*
 * preload.h - finds the library and the program, and judges whether it can be preloaded there.
 *
 * The dynamic loader reads LD_PRELOAD, and only for programs that use it and are not privileged. So
 * a statically linked, setuid or foreign program runs, but never loads the library.
 */
#pragma once

#include <gelf.h>
#include <limits.h>
#include <stdbool.h>

#include "vendor.h"

/* Looks for the library for a runtime: GPUSHARE_LIBRARY, beside this executable, in the lib
 * directories beside its directory, where it is installed. The path is absolute. False: `path` then
 * lists the places searched, for a message. */
bool preload_library(enum runtime runtime, char path[PATH_MAX]);

/* False where LD_PRELOAD could not hold the path: blanks and colons separate there. */
bool preload_can_name(const char *path);

/* Finds the path at which execvp would find the command. 0, -ENOENT or -EACCES. */
int preload_program(const char *command, char path[PATH_MAX]);

/* The directory of a simulated driver beside this executable; malloc'ed. NULL: there is none. */
char *preload_simulator(void);
/* That the loader finds no driver for programs of CUDA, and where one is; malloc'ed. NULL: it finds
 * one, or the runtime is another. */
char *preload_no_driver(enum runtime runtime);

#define PRELOAD_DAMAGED "is a damaged ELF file" /* an obstacle to the kernel as well */

/* Writes why the library would not be loaded into the program at `path`, as a phrase that follows
 * its name. False: no reason is known. Of a script, the interpreter counts. */
bool preload_obstacle(const char *path, char *why, unsigned size);

/* Opens a file as libelf does, of whatever kind it is, for elf_end. NULL: it cannot be read. */
Elf *preload_elf(const char *path);
/* The first section of a type, and its header. NULL: there is none, or the file is no ELF file. */
Elf_Data *preload_section(Elf *elf, unsigned type, GElf_Shdr *header);

/* --- a library before gpushare's that answers in its place --- */

/* The loader reads LD_PRELOAD, then /etc/ld.so.preload. The first library there is searched first:
 * if it defines dlsym, or a function of CUDA's, gpushare may see no call. */

#define RIVAL_SYSTEM_LIST "/etc/ld.so.preload" /* a device of `gpushare cdi` brings one */

/* What that file has; malloc'ed. "": there is none. */
char *rival_system_list(void);
/* The first library before `library` in these lists that does, and what it defines, as a phrase:
 * "/usr/lib/libvgpu.so stands before libgpushare.so in LD_PRELOAD and defines dlsym"; malloc'ed.
 * NULL: there is none, or `library` is in no list. `preload` is LD_PRELOAD's value, or NULL; `maps`
 * those of the process that has it, where a name without a path is looked for, or NULL. */
char *rival_of(const char *preload, const char *library, const char *maps);
