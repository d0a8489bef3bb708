/*
 * resolved.h - hooked functions by the addresses that the driver's resolvers answer.
 *
 * In a driver of two layers (WSL, remote cards) libcuda.so.1 hands on to another library, and so do
 * its resolvers: they answer with addresses of that library, which none of libcuda.so.1's functions
 * has. Such an address is a hooked function's if the resolver that gave it answers the same for
 * that function's name and version. It is looked up once, when needed. Any thread.
 */
#pragma once

#include "driver.h"

enum gps_resolver_version { GPS_RESOLVER_V1, GPS_RESOLVER_V2 };

/* The driver's own answer, also where another library is called in between. NULL: none. */
void *gps_resolved_by_driver(enum gps_resolver_version resolver, const char *name, int version,
                             cuuint64_t flags);

/* The slot of gps_real of the address that a resolver has answered for a name; -1: none. A slot
 * that was empty, because libcuda.so.1 does not export the function, gets the address. */
int gps_resolved_slot(enum gps_resolver_version resolver, const char *name, void *address);
