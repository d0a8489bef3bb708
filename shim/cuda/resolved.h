/*
 * resolved.h - hooked functions by what the driver's resolvers answer for their names.
 *
 * In a driver of two layers (WSL, remote cards) libcuda.so.1 hands on to another library, and so do
 * its resolvers: they answer with that one's addresses, which none of libcuda.so.1's functions has.
 * Such an address is a hooked function's if the resolver that gave it answers the same for that
 * function's name and version. Asked when it is needed, and once. Any thread, any time.
 */
#pragma once

#include "driver.h"

enum gps_resolver_version { GPS_RESOLVER_V1, GPS_RESOLVER_V2 };

/* What the driver itself answers, also where another library steps between. NULL: nothing. */
void *gps_resolved_by_driver(enum gps_resolver_version resolver, const char *name, int version,
                             cuuint64_t flags);

/* Which slot of gps_real a resolver has answered with for a name; -1: none. A slot that was empty,
 * because libcuda.so.1 does not export the function, gets the address. */
int gps_resolved_slot(enum gps_resolver_version resolver, const char *name, void *address);
