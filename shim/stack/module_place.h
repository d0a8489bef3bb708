/*
 * module_place.h - which module lies at an address, and whether it is still the same one.
 *
 * Nothing here allocates or changes errno or dlerror. Safe from any thread.
 */
#pragma once

#include <dlfcn.h>

#include "module.h"

/* The module whose segments have an address. False: none (JIT code). 13 ns since libc 2.35. */
bool gps_module_of(const void *address, struct gps_module *module);

/* Whether the global scope has the module of an address before this library: the main program, and
 * libraries preloaded before. These modules stay at the head of the linker's list for good. */
bool gps_module_is_before_us(const void *address);

/* Finds its build id through the ELF header in memory. Returns the number of bytes; 0: none. */
unsigned gps_module_build_id(const struct gps_module *module, const uint8_t **id);

/* Distinguishes a module from one that is loaded at its addresses later: eight bytes of its build
 * id and their address, or a hash of its path and layout if it has no build id. */
struct gps_module_mark {
    uintptr_t where; /* 0: there is no build id, or no module */
    uint64_t value;
};
enum { GPS_MODULE_PERMANENT = 1 }; /* for `where`, of a module that is never unloaded */

/* The mark of the module that holds an address. */
struct gps_module_mark gps_module_mark_of(const void *address);

/* Whether the module that holds the address now is the one with the mark. Async-signal-safe,
 * with a libc of 2.35 or later. */
bool gps_module_has_mark(const void *address, struct gps_module_mark mark);

/* --- find_object.c: _dl_find_object, also where the C library is older than 2.35 --- */

/* The library's own copy of libgcc's unwinder and module_place.c both call it. It is hidden, and
 * calls the linker's function if there is one. */

#ifndef DLFO_EH_SEGMENT_TYPE /* the headers are older than 2.35 */
struct dl_find_object {
    unsigned long long dlfo_flags;
    void *dlfo_map_start, *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame;
    unsigned long long others[7];
};
int _dl_find_object(void *address, struct dl_find_object *found);
#endif

/* Searches the list of all modules: 0, or -1 if the address is in none. Takes the linker's lock.
 * _dl_find_object calls it if the linker has no such function. */
int gps_find_object_listed(void *address, struct dl_find_object *found);
