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
    const void *start, *end;   /* of its mapped segments; set only by gps_module_of */
};
/* The module of an entry of the linker's list. A macro, because callers are not instrumented. */
#define GPS_MODULE_AT(map)                                                                         \
    ((struct gps_module){(map)->l_addr, (map)->l_ld, (map)->l_name, NULL, NULL})

/* The address of a function or object that the module itself defines (default version), or NULL.
 * Uses no libc and no instrumented code, so it works while only libc and the linker are relocated.
 */
void *gps_module_symbol(const struct gps_module *module, const char *name);

/* DT_SONAME, or NULL. Works as early. */
const char *gps_module_soname(const struct gps_module *module);

/* Calls fn for every loaded object in load order, until fn returns true. False: fn never did. Takes
 * the linker's lock (linker.h), so it is not for hot paths. */
typedef bool gps_module_fn(void *arg, const struct gps_module *module);
bool gps_module_each(gps_module_fn *fn, void *arg);

/* Calls fn for the names of a module's direct dependencies (DT_NEEDED) in their order. */
typedef void gps_module_name_fn(void *arg, const char *soname);
void gps_module_each_needed(const struct gps_module *module, gps_module_name_fn *fn, void *arg);

/* The address of a symbol of libc itself (of libdl before 2.34), even if another library interposes
 * it. For dlsym and dlvsym. Uses no libc and no instrumented code, because sanitizer
 * runtimes call it while they start. */
void *gps_libc_symbol(const char *name);

/* The address of a symbol of libc, or of a library before it: what a program calls without us. */
void *gps_next_symbol(const char *name);

/* The address of a symbol in the first loaded module that defines it; NULL: none does. */
void *gps_process_symbol(const char *name);

/* The address by which a module refers to its own variable: in the main program, if that has a copy
 * of the variable (a copy relocation, in programs that are not PIE). NULL: it is not defined. */
void *gps_module_variable(const struct gps_module *module, const char *name);

/* A function of libc that the library must not be linked with, because it is newer than glibc 2.28
 * or was in another library then, which the program may not have loaded. NULL: it is not there. */
#define GPS_LATE(name)            GPS_LATE_BY(name, #name)
#define GPS_LATE_BY(name, string) ((__typeof__(&(name)))gps_process_symbol(string))

/* --- preloaded.c: the libraries that are preloaded beside this one --- */

/* The linker's list has the program, then the preloaded libraries in their order (LD_PRELOAD, then
 * /etc/ld.so.preload), then the program's dependencies. The first two never change. */

enum gps_preloaded { GPS_PRELOADED_BEFORE, GPS_PRELOADED_BEHIND };

/* Calls fn for each preloaded library before this one, or behind it, in their order, until fn
 * returns true. False: fn never did. */
bool gps_preloaded_each(enum gps_preloaded where, gps_module_fn *fn, void *arg);

/* The address of a symbol in the first preloaded library behind this one, or behind `after`, that
 * defines it without a version, as any reference finds it. NULL: none does. */
void *gps_preloaded_symbol(const char *name, const struct gps_module *after);
