/*
 * module.h - finds loaded objects and their symbols without dlsym.
 *
 * The result of dlsym depends on its caller and changes dlerror, which belong to the program. So
 * the library reads the dynamic symbol tables itself. Nothing here allocates or changes errno or
 * dlerror. Safe from any thread.
 */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* One loaded object. */
struct gps_module {
    uintptr_t base;            /* load bias */
    const ElfW(Dyn) * dynamic; /* NULL: none */
    const char *path;          /* as the linker has it; "" for the main program */
    const void *start;         /* where its first segment is mapped; only of gps_module_of */
};

/* The address of a function or object that the module itself defines (default version), or NULL.
 * Uses no libc and no instrumented code, so it works while only libc and the linker are relocated.
 */
void *gps_module_symbol(const struct gps_module *module, const char *name);

/* The module whose segments contain an address. False: none does (JIT code). Takes 13 ns. */
bool gps_module_of(const void *address, struct gps_module *module);

/* The build id of a module of gps_module_of, found through its ELF header in memory. Returns the
 * number of bytes; 0: it has none. */
unsigned gps_module_build_id(const struct gps_module *module, const uint8_t **id);

/* DT_SONAME, or NULL. */
const char *gps_module_soname(const struct gps_module *module);

/* Calls fn for every loaded object in load order, until fn returns true. False: fn never did. Takes
 * the linker's lock, so it is not for hot paths. */
typedef bool gps_module_fn(void *arg, const struct gps_module *module);
bool gps_module_each(gps_module_fn *fn, void *arg);

/* Whether the module needs the library `soname` (DT_NEEDED). */
bool gps_module_needs(const struct gps_module *module, const char *soname);

/* The address of a symbol of libc itself, even if another library interposes it; for dlsym and
 * dlvsym. Uses no libc and no instrumented code, because sanitizer runtimes call it while they
 * start. */
void *gps_libc_symbol(const char *name);
