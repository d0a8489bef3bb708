/* cuda_lookup.h - which addresses are handed out for hooked functions. Any thread, any time. */
#pragma once

#include <stdbool.h>

/* Whether an address is one of our own exported functions, of the driver's names or the runtime's.
 */
bool gps_lookup_is_ours(const void *address);

/* Whether it is one of the runtime's names. */
bool gps_lookup_is_runtime(const void *address);
