/*
 * find_object.h - _dl_find_object, also where the C library is older than 2.35.
 *
 * The library's own copy of libgcc's unwinder and module.c both call it. It is hidden, and calls
 * the linker's function if there is one.
 */
#pragma once

#include <dlfcn.h>

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
